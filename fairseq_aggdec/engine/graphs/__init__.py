"""Engines whose passes are captured as CUDA graphs, over buffers that stay where they are."""
