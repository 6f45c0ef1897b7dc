"""The engine on a GPU: passes captured as CUDA graphs, and Triton kernels for few tokens in half precision."""
