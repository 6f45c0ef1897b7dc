"""What makes checkpoints out of checkpoints: `aggdec average`, `export`, `shrink`, and starts for NAT models."""
