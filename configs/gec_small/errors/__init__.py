"""Makes learners' errors in clean English sentences: `aggdec corrupt`, and the training pairs of configs/gec_small."""
