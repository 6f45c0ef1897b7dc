"""Super-resolution of images as a task of fairseq (papers/004 §7.2)."""
