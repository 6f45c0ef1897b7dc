"""What computes a model's products, layers and choices on a device: `PlainBackend`, or a faster one."""

from fairseq_aggdec.engine.plain.backend import PlainBackend as Backend

__all__ = ["Backend"]
