"""Decoding of much text or data in parts, by one process or by several."""
