"""Checks that lossless modes give the same output as fairseq."""
