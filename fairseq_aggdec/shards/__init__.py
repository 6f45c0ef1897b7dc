"""Decoding of much text or data in shards: by one process or by several; distillation, too."""
