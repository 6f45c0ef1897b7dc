"""Measures and compares: benchmarks, scores, reports, tuning. Decoding and training never import it."""
