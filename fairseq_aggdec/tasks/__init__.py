"""fairseq tasks; `--user-dir` imports every module here."""
