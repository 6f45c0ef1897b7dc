"""Decoding of much text or data in parts: by one process, by several, or on a Ray cluster."""
