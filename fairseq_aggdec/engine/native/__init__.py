"""Products with weights and a decoder's layers in C, for blocks of few tokens on a CPU, in single precision.

What PyTorch does for a block of one to some ten tokens takes two to five times as long as the arithmetic: a product of
few rows does not read its weights as fast as memory gives them, and the thirty small operations of a layer take longer
than the numbers they move. `kernels.c` is both, in 350 lines; without it (no compiler at installation, another
processor) everything runs on PyTorch's operations.
"""
