"""fairseq models; `--user-dir` imports every module here."""
