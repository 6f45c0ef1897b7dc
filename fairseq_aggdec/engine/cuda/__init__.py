"""Triton kernels for few tokens in half precision, and the backend that has them."""
