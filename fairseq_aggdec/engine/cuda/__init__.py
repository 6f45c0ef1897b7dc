"""The engine on a CUDA device: passes over buffers that stay where they are, captured as graphs."""
