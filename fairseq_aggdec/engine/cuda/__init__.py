"""The engine on NVIDIA's GPUs: Triton kernels, and the graphs that hold an iteration."""
