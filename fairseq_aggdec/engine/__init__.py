"""Cached forward passes of stock fairseq encoders and decoders over blocks of tokens."""
