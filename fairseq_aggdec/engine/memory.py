"""What the passes of a batch read and write: cached keys and values of the outputs, and those of the sources."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fairseq_aggdec.decoding.tokens import RowSelection
from fairseq_aggdec.engine.parts import Parts
from fairseq_aggdec.engine.plain.layers import KVCache, keep_rows


@dataclass
class LastFeatures:
    """The decoder output of the last block, from which proposal heads draft."""

    values: Tensor
    """R x W x D, R at least the count of active rows"""
    starts: list[int]
    """the position of each row's first column"""
    are_static: bool = False
    """whether a graph has written them, and writes the next ones there, too"""

    def at(self, columns: Tensor) -> Tensor:
        """The features of the first rows in these columns, N -> N x D."""
        return self.values[
            torch.arange(columns.size(0), device=columns.device), columns
        ]

    def keep(self, order: RowSelection) -> None:
        """Keep only these rows, in place: a graph may read `values`."""
        keep_rows(self.values, order)
        self.starts = [self.starts[row] for row in order.rows]


class Memory:
    """The memory of a batch, allocated anew for each; `graphs.memory.StaticMemory` stays where it is."""

    def __init__(self, parts: Parts, cache: KVCache) -> None:
        """`parts`: of the decoder; `cache`: for the keys and values of its layers."""
        self._parts = parts
        self.cache = cache
        self.cross = torch.empty(0)
        """keys and values of the encoder output: layers x B x H x S x 2D/H"""
        self.padding: Tensor | None = None
        """B x S, the hidden positions of the encoder output; None: nothing is hidden"""
        self.temperature = 1.0
        """divides the logits of this batch"""
        self.keeps_features = False
        """whether somebody reads `features`"""
        self.features: LastFeatures | None = None
        """None: before the first block"""

    def start(self, encoder_out: dict[str, Any], temperature: float) -> None:
        """Start a new batch, see `Decoder.start`."""
        self.temperature = temperature
        self.features = None
        states = encoder_out["encoder_out"][0].detach()  # S x B x C
        masks = encoder_out["encoder_padding_mask"]
        self._start(states, masks[0] if len(masks) > 0 else None, encoder_out)

    def keep(self, order: RowSelection) -> None:
        """Keep only these rows."""
        self._keep(order)
        if self.features is not None:
            self.features.keep(order)

    def _start(
        self, states: Tensor, hidden: Tensor | None, encoder_out: dict[str, Any]
    ) -> None:
        # a mask without padding is dropped where reading it costs no synchronisation
        self.padding = None
        if hidden is not None and (
            self._parts.backend.sync_is_costly or bool(hidden.any())
        ):
            # a contiguous copy: rows are removed in place, and the kernels read contiguous memory
            self.padding = hidden.clone(memory_format=torch.contiguous_format)
        self.cross = self._parts.keys_and_values(states.transpose(0, 1)).contiguous()
        self.cache.start(states.size(1), states)

    def _keep(self, order: RowSelection) -> None:
        self.cache.keep(order)
        self.cross = keep_rows(self.cross, order, dim=1)
        if self.padding is not None:
            self.padding = keep_rows(self.padding, order)
