"""What is to be tried and measured on a GPU, in parts that can be stopped and taken up again: docs/gpu-day.md."""
