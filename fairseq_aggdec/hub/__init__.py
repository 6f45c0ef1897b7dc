"""Hugging Face's checkpoints of Transformers, imported as fairseq's: weights, vocabulary, tokenizer and settings."""
