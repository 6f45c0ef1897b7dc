"""Measures and compares: benchmarks, scores, reports, tuning, the fuzzer. Decoding and training never import it."""
