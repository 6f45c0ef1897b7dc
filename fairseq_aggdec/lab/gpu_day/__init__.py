"""Runs all tests and measurements that need a GPU, in parts that can be interrupted and resumed: docs/gpu-day.md."""
