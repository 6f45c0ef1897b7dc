"""Costs of a pass and of a draft on a CPU, in tokens: the time in which the verifier computes one token more."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

_WEIGHTS_IN_CACHE = 8e6
"""number of weights of the largest model that fits into a processor's caches"""
_READING_CACHE = 4.0
"""tokens computed in the time of reading weights from the caches"""
_KEY_COST = 16
"""multiplications in the time of reading a number of a source's keys and values, which a row's tokens share"""
_COPYING = 10e6
"""multiplications in the time in which the host copies and judges the drafts of a pass"""
_INT8_COST_RATIO = 0.4
"""cost of a draft in int8 as a share of its cost in fp32"""


@dataclass(frozen=True)
class Processor:
    """Overheads of a pass on a CPU, in multiplications with a weight: fitted to timed passes of five models."""

    call: float
    """small operations of a pass outside its layers, and the host's"""
    layer: float
    """small operations of a layer"""
    draft: float
    """small operations of a draft outside its layers"""
    reading: float
    """tokens computed in the time of reading the weights of a large model from memory"""


PYTORCH = Processor(call=30e6, layer=30e6, draft=60e6, reading=10)
"""PyTorch's operations"""
KERNELS = Processor(call=3e6, layer=0.5e6, draft=15e6, reading=10)
"""the engine's kernels"""
KERNELS_16_BITS = replace(KERNELS, reading=5)
"""the engine's kernels with weights stored in 16 bits"""


@dataclass(frozen=True)
class DraftCost:
    """Costs of drafting by a model."""

    block_size: int
    """the longest draft"""
    call: float
    """cost of a draft of the whole batch, or of a step of `steps`, tokens aside"""
    token: float
    """cost of a draft token"""
    read: float = 0.0
    """reading the weights; overlaps with tokens"""
    steps: bool = False
    """whether each token of a draft takes a step"""

    def whole(self, rows: int, length: int) -> float:
        """The cost of drafting `length` tokens, at least one, for each row."""
        if self.steps:
            return length * (self.call + max(self.read, self.token * rows))
        return self.call + max(self.read, self.token * rows * length)

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
        """Estimate the costs from the sizes of the decoders.

        `drafter`: a `NarDrafterDecoder`, or with `steps` any decoder; `verifiers`: one decoder, or an ensemble's;
        `quantised`: whether the drafter, but not the verifier, computes in int8; `symbols`: the number that a drafter
        with `steps` scores; None: all.
        """
        weights = _weights(drafter)
        pass_weights = sum(map(_weights, verifiers))
        if symbols is not None:
            weights -= drafter.output_projection.weight[symbols:].numel()
        call = (cpu.call if steps else cpu.draft) + cpu.layer * _layers(drafter)
        token = (_INT8_COST_RATIO if quantised else 1.0) * weights / pass_weights
        return cls(
            block_size,
            call / pass_weights,
            token,
            token * _reading(weights, cpu),
            steps,
        )


@dataclass(frozen=True)
class Costs:
    """Costs of a verifier and its drafter."""

    fixed: float
    """c: small operations of a pass"""
    free: float
    """tokens that a pass computes while it reads the weights"""
    draft: DraftCost | None = None
    """costs of a model that drafts; None without such a model"""
    position: float = 0.0
    """attention of a row's tokens to a position of the source"""
    copying: float = 0.0
    """the host's work on the drafts of a pass, where no model drafts"""

    def iteration(self, rows: int, length: int, attention: float = 0.0) -> float:
        """The cost of drafting so many tokens for each row and of verifying them.

        `attention`: `position` times the length of the sources.
        """
        drafting = 0.0
        if length > 0:
            drafting = (
                self.copying if self.draft is None else self.draft.whole(rows, length)
            )
        return self.fixed + max(self.free, rows * (attention + 1 + length)) + drafting

    @classmethod
    def of(
        cls, verifiers: Sequence[Any], cpu: Processor, draft: DraftCost | None = None
    ) -> "Costs":
        """Derive costs from the sizes of the verifiers' decoders, one or an ensemble."""
        weights = [_weights(verifier) for verifier in verifiers]
        layers = sum(map(_layers, verifiers))
        fixed = (cpu.call * len(verifiers) + cpu.layer * layers) / sum(weights)
        # of other decoders than Transformers the width is not known, and this cost is left out
        keys = sum(
            2 * _layers(verifier) * getattr(verifier, "embed_dim", 0)
            for verifier in verifiers
        )
        free = max(_reading(each, cpu) for each in weights)
        return cls(
            fixed, free, draft, _KEY_COST * keys / sum(weights), _COPYING / sum(weights)
        )


def _weights(decoder: Any) -> int:
    """Multiplications for one token, attention aside; at least one, for a model without weights."""
    # the output projection may be the embedding
    weights = decoder.named_parameters(remove_duplicate=False)
    return max(
        1,
        sum(
            weight.numel()
            for name, weight in weights
            if weight.dim() >= 2 and "embed" not in name
        ),
    )


def _layers(decoder: Any) -> int:
    # fairseq's convolutional decoder has no `layers`
    return len(getattr(decoder, "layers", ()))


def _reading(weights: int, cpu: Processor) -> float:
    """Tokens that a model of so many weights computes while it reads them."""
    return cpu.reading if weights > _WEIGHTS_IN_CACHE else _READING_CACHE
