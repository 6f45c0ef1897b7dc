"""What the passes of a batch read and write: cached keys and values of the outputs, and those of the sources."""

from typing import Any

import torch
from torch import Tensor

from fairseq_aggdec.decoding.tokens import Order
from fairseq_aggdec.engine.parts import Parts
from fairseq_aggdec.engine.plain.layers import KVCache, keep_rows


class Memory:
    """The memory of a batch, allocated anew for each; `graphs.memory.StaticMemory` stays where it is."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.cache = KVCache(*parts.sizes)
        self.cross = torch.empty(0)
        """keys and values of the encoder output: layers x B x H x S x 2D/H"""
        self.padding: Tensor | None = None
        """B x S, the hidden positions of the encoder output; None: nothing is hidden"""
        self.temperature = 1.0
        """divides the logits of this batch"""

    def start(self, encoder_out: dict[str, Any]) -> None:
        """Start a new batch, see `Decoder.start`."""
        states = encoder_out["encoder_out"][0].detach().transpose(0, 1)  # B x S x C
        masks = encoder_out["encoder_padding_mask"]
        self.padding = None
        # a mask without padding is dropped where reading it costs no synchronisation
        if len(masks) > 0 and (self._parts.backend.reads_wait or bool(masks[0].any())):
            # a contiguous copy: rows are removed in place, and the kernels read contiguous memory
            self.padding = masks[0].clone(memory_format=torch.contiguous_format)
        self.cross = self._parts.keys_and_values(states).contiguous()
        self.cache.start(states.size(0), states)

    def keep(self, order: Order) -> None:
        """Keep only these rows."""
        self.cache.keep(order)
        self.cross = keep_rows(self.cross, order, dim=1)
        if self.padding is not None:
            self.padding = keep_rows(self.padding, order)
