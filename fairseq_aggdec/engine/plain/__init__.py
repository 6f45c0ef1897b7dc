"""An engine's computations by PyTorch's operations, on any device: the reference of `native` and `cuda`."""
