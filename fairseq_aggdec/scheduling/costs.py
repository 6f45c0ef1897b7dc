"""Costs of a block and of a draft, in rows of the verifier: a row is the cost of one more token in a block."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

_FIRST_DRAFT_SURCHARGE = 0.3
"""additional cost of a batch's first draft, as a share of a draft"""
_CHOICE_COST_PER_SYMBOL = 500
"""multiplications per symbol of the vocabulary to choose a draft token"""
_WEIGHTS_IN_CACHE = 8e6
"""number of weights of the largest model that fits into a processor's caches"""
_INT8_COST_RATIO = 0.4
"""cost of a draft in int8 as a share of its cost in fp32"""


@dataclass(frozen=True)
class Processor:
    """Overheads of a pass on a CPU, in multiplications with a weight (docs/tried.md)."""

    call: float
    """small operations of a pass outside its layers"""
    layer: float
    """small operations of a layer"""
    wide: float
    """additional cost of a layer for several tokens per row: PyTorch's attention is faster for one token, and padding
    is removed and restored"""
    draft: float
    """small operations of a draft outside its layers"""
    reading: float
    """reading a weight from memory, where the model does not fit into the caches; overlaps with multiplication"""
    host: float = 3e6
    """the host's own work on a row that drafts, or on a prefix of a beam search"""


PYTORCH = Processor(call=50e6, layer=50e6, wide=15e6, draft=60e6, reading=19)
"""PyTorch's operations"""
KERNELS = Processor(call=12e6, layer=3e6, wide=2e6, draft=90e6, reading=13, host=1.2e6)
"""the engine's kernels"""
KERNELS_16_BITS = replace(KERNELS, reading=6)
"""the engine's kernels with weights stored in 16 bits"""


@dataclass(frozen=True)
class DraftCost:
    """Costs of drafting by a model, in rows of the verifier."""

    block_size: int
    """the longest draft"""
    call: float = 0.0
    """cost of a draft of the whole batch, or of a step of `steps`, tokens aside"""
    token: float = 0.0
    """cost of a draft token"""
    unread: float = 0.0
    """cost of a committed token that the drafter must read first"""
    start: float = 0.0
    """additional cost of a batch's first draft"""
    rereads: bool = False
    """whether every draft reads all committed tokens again"""
    read: float = 0.0
    """reading the weights; overlaps with tokens"""
    steps: bool = False
    """whether each token of a draft takes a step, which reads one token of each row"""

    def whole(self, rows: int, size: int, unread: float) -> float:
        """The cost of drafting `size` tokens for each of `rows` rows after reading `unread` tokens."""
        if self.steps:
            return size * (self.call + max(self.read, self.token * rows))
        return self.call + max(self.read, self.token * rows * size + self.unread * unread)

    @classmethod
    def of(
        cls,
        drafter: Any,
        block_size: int,
        verifiers: Sequence[Any],
        cpu: Processor,
        quantised: bool = False,
        steps: bool = False,
        symbols: int | None = None,
    ) -> "DraftCost":
        """Estimate the costs, in rows of the verifier, from the sizes of the decoders.

        `drafter`: a `NarDrafterDecoder`, or with `steps` any decoder; `verifiers`: one decoder, or an ensemble's;
        `quantised`: whether the drafter, but not the verifier, computes in int8; `symbols`: the number that a drafter
        with `steps` scores; None: all.
        """
        weights = _token_cost(drafter)
        if symbols is not None:
            weights -= drafter.output_projection.weight[symbols:].numel()
        symbols = symbols or drafter.embed_tokens.num_embeddings
        row = sum(map(_token_cost, verifiers))
        scale = (_INT8_COST_RATIO if quantised else 1.0) / row
        share = scale * weights
        call = ((cpu.call if steps else cpu.draft) + cpu.layer * _layers(drafter)) / row
        read = scale * _reading_cost(weights, cpu)
        choice = _CHOICE_COST_PER_SYMBOL * symbols / row
        start = _FIRST_DRAFT_SURCHARGE * (call + read)
        if steps:
            return cls(block_size, call, share + choice, share, start, False, read, True)
        unread = share - scale * drafter.output_projection.weight.numel()
        return cls(block_size, call, share + choice, unread, start, not drafter.is_causal, read)


@dataclass(frozen=True)
class Costs:
    """Costs of a verifier and its drafter, in rows of the verifier."""

    least: float
    """c_0: fixed cost of a pass"""
    wide: float = 0.0
    """additional cost of a pass with a draft"""
    ragged: bool = False
    """whether the verifier can leave padding out of a block"""
    draft: DraftCost | None = None
    """costs of a model that drafts; None without such a model"""
    host: float = 0.0
    """the host's own work on each row that drafts, or on a prefix of a beam search"""
    read: float = 0.0
    """c_read: reading the weights; overlaps with the rows"""

    @classmethod
    def of(
        cls, verifiers: Sequence[Any], cpu: Processor, ragged: bool = False, draft: DraftCost | None = None
    ) -> "Costs":
        """Derive costs from the sizes of the verifiers' decoders, one or an ensemble."""
        row, layers = sum(map(_token_cost, verifiers)), sum(map(_layers, verifiers))
        least = (cpu.call * len(verifiers) + cpu.layer * layers) / row
        read = sum(_reading_cost(_token_cost(verifier), cpu) for verifier in verifiers) / row
        return cls(least, cpu.wide * layers / row, ragged, draft, cpu.host / row, read)

    def rows(self, count: float) -> float:
        """The cost of a pass of `count` rows, without `wide` and `host`."""
        return self.least + max(self.read, count)


def _token_cost(decoder: Any) -> int:
    """Multiplications for one token, attention aside; at least one, for a model without weights."""
    weights = decoder.named_parameters(remove_duplicate=False)  # the output projection may be the embedding
    return max(1, sum(weight.numel() for name, weight in weights if weight.dim() >= 2 and "embed" not in name))


def _layers(decoder: Any) -> int:
    return len(getattr(decoder, "layers", ()))  # fairseq's convolutional decoder has no `layers`


def _reading_cost(weights: int, cpu: Processor) -> float:
    """The cost of reading weights from memory, in multiplications; 0 where they stay in the processor's caches."""
    return cpu.reading * weights if weights > _WEIGHTS_IN_CACHE else 0.0
