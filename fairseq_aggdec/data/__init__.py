"""Data sets: downloads, the steps of `aggdec prepare`, sentence pairs and M2 files, images as tokens."""
