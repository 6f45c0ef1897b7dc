"""What makes an experiment's data: downloads, text, subwords, and the steps of `aggdec prepare`."""
