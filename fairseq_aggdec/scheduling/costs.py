"""What a block and a draft cost, in rows of the verifier: a row is what one token more in a block costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

_START = 0.3
"""the first draft of a batch costs so much more, as a share of a draft"""
_CHOICE = 500
"""choosing a drafted token after the one before it, for each symbol of the vocabulary"""
_CACHED = 8e6
"""weights of the largest model that fits into a processor's caches"""
_QUANTISED = 0.4
"""what a draft in int8 takes of one in fp32"""
_LEAST_OF_A_GPU = 256
"""c_0 on a GPU: in the time of reading its weights it could multiply so many rows"""


@dataclass(frozen=True)
class Processor:
    """What a pass costs a CPU besides its tokens, in multiplications with a weight (docs/tried.md)."""

    call: float
    """the small operations of a pass outside its layers"""
    layer: float
    """the small operations of a layer"""
    wide: float
    """what a layer costs more for a block than for one token a row: PyTorch's attention has a faster way for one, and
    gaps between rows are closed and opened"""
    draft: float
    """the small operations of a draft outside its layers"""
    reading: float
    """reading a weight from memory, for models that do not fit into the processor's caches; it multiplies meanwhile"""
    host: float = 3e6
    """the host's own work on a row that drafts, or on a prefix of a beam search"""


PYTORCH = Processor(call=50e6, layer=50e6, wide=15e6, draft=60e6, reading=19)
"""with PyTorch's operations"""
KERNELS = Processor(call=12e6, layer=3e6, wide=2e6, draft=90e6, reading=13, host=1.2e6)
"""with the engine's kernels"""
KERNELS_16_BITS = replace(KERNELS, reading=6)
"""with weights that are kept in 16 bits"""


@dataclass(frozen=True)
class DraftCost:
    """What a drafter that is a model costs, in rows of the verifier."""

    block_size: int
    """the longest draft"""
    call: float = 0.0
    """each draft, of a whole batch"""
    token: float = 0.0
    """each draft token"""
    unread: float = 0.0
    """each committed token that has to be read first"""
    start: float = 0.0
    """the first draft of a batch, beside that"""
    rereads: bool = False
    """whether every draft reads all that is committed anew"""
    read: float = 0.0
    """reading the weights: tokens that cost less are computed meanwhile"""

    def whole(self, drafted: float, unread: float) -> float:
        """What a draft of a batch costs, of so many tokens behind so many that have to be read first."""
        return self.call + max(self.read, self.token * drafted + self.unread * unread)

    @classmethod
    def of(
        cls, drafter: Any, block_size: int, verifiers: Sequence[Any], cpu: Processor | None, quantised: bool = False
    ) -> DraftCost:
        """Derived from the sizes of a `NarDrafterDecoder` and of the verifiers' decoders, one or an ensemble.

        `cpu`: None on a GPU. `quantised`: the drafter alone computes in int8.
        """
        row, projection = sum(map(_row, verifiers)), drafter.output_projection.weight
        scale = (_QUANTISED if quantised else 1.0) / row
        share = scale * _row(drafter)
        call, read = _LEAST_OF_A_GPU * share, 0.0
        if cpu is not None:
            call = (cpu.draft + cpu.layer * _layers(drafter)) / row
            read = scale * _reading(drafter, cpu)
        choice = _CHOICE * projection.size(0) / row
        unread = share - scale * projection.numel()
        start = _START * (call + read)
        return cls(block_size, call, share + choice, unread, start, not drafter.is_causal, read)


@dataclass(frozen=True)
class Costs:
    """What a verifier and its drafter cost, in rows of the verifier: one token in one pass."""

    least: float
    """c_0: what a pass costs whatever it holds, such as its calls"""
    wide: float = 0.0
    """what a pass with any draft costs besides"""
    ragged: bool = False
    """whether the verifier can leave padding out of a block"""
    draft: DraftCost | None = None
    """of a model; None where there is none"""
    host: float = 0.0
    """what the host's own work costs, on each row that drafts or on a prefix of a beam search"""
    read: float = 0.0
    """reading the weights: so many rows are computed meanwhile"""

    @classmethod
    def of(
        cls, verifiers: Sequence[Any], cpu: Processor | None, ragged: bool = False, draft: DraftCost | None = None
    ) -> Costs:
        """Derived from the sizes of the verifiers' decoders, one or an ensemble; `cpu`: None on a GPU."""
        if cpu is None:
            return cls(_LEAST_OF_A_GPU, ragged=ragged, draft=draft)
        row, layers = sum(map(_row, verifiers)), sum(map(_layers, verifiers))
        least = (cpu.call * len(verifiers) + cpu.layer * layers) / row
        read = sum(_reading(verifier, cpu) for verifier in verifiers) / row
        return cls(least, cpu.wide * layers / row, ragged, draft, cpu.host / row, read)

    def rows(self, count: float) -> float:
        """What a pass of so many rows costs, drafted tokens' own costs aside."""
        return self.least + max(self.read, count)


def _row(decoder: Any) -> int:
    """Multiplications for one token, those with the source's keys and values aside."""
    weights = decoder.named_parameters(remove_duplicate=False)  # the projection's may be the embedding's
    return sum(weight.numel() for name, weight in weights if weight.dim() >= 2 and "embed" not in name)


def _layers(decoder: Any) -> int:
    return len(getattr(decoder, "layers", ()))  # fairseq's convolutional decoder calls them otherwise


def _reading(decoder: Any, cpu: Processor) -> float:
    """What it costs to read a model from memory, in multiplications."""
    weights = _row(decoder)
    return cpu.reading * weights if weights > _CACHED else 0.0
