"""What training needs beside `fairseq-train`: distilled data, and checkpoints made of checkpoints."""
