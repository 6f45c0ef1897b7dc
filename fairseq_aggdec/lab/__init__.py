"""Benchmarks, verification, scores, reports and tuning. Decoding and training never import it."""
