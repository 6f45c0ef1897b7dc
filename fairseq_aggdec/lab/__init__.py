"""What only the papers' tables need: benchmarks, scores, reports, tuning. Decoding and training never import it."""
