"""Decoding of much text or data in shards: by one process, by several, or on a Ray cluster; distillation, too."""
