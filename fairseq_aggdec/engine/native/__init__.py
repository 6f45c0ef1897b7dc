"""Products with weights, and an encoder's and a decoder's layers, in C, for blocks of few tokens on a CPU.

In single precision, or with products in int8.

What PyTorch does for a block of one to some ten tokens takes two to five times as long as the arithmetic: a product of
few rows does not read its weights as fast as memory gives them, and the thirty small operations of a layer take longer
than the numbers they move. `kernels.c` is both, and `beams.c` a step of a beam search, which is many small operations,
too. Without them (no compiler at installation, another processor) everything runs on PyTorch's operations.
"""
