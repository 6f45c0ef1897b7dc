"""Data sets that several experiments use."""
