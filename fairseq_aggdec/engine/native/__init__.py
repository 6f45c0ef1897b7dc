"""Encoder and decoder layers in C, for blocks of few tokens on a CPU, in single precision or with products in int8.

For a block of one to ten tokens PyTorch takes two to five times as long as the arithmetic: a product of few rows reads
its weights slower than memory delivers them, and the thirty small operations of a layer have fixed costs. `kernels.c`
replaces both, and `beams.c` the small operations of a beam search step. Without them (no compiler at installation,
another processor) PyTorch's operations are used.
"""
