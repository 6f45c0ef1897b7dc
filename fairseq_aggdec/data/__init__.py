"""Data made by this package: synthetic grammatical errors and image tokens."""
