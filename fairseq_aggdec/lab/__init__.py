"""Benchmarks, scores, reports, tuning, `aggdec drafter`. Decoding and training never import it."""
