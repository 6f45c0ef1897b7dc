"""The drafter of a batch, by a function for each kind, and how much of its drafts is verified."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from fairseq_aggdec.decoding.drafters.block import BlockDrafter
from fairseq_aggdec.decoding.drafters.heads import HeadDrafter
from fairseq_aggdec.decoding.drafters.input_guided import (
    USER_DRAFT,
    SourceCopyDrafter,
    SourceMatcher,
)
from fairseq_aggdec.decoding.drafters.none import NoDrafter
from fairseq_aggdec.decoding.drafters.unverified import decode_unverified
from fairseq_aggdec.decoding.roles import VERIFY_ALL, Drafter, DraftSchedule
from fairseq_aggdec.decoding.tokens import Decoded
from fairseq_aggdec.engine.arithmetic import Arithmetic
from fairseq_aggdec.engine.choose_backend import arithmetic_of_drafts, weight_of
from fairseq_aggdec.engine.drafter import LoadedDrafter
from fairseq_aggdec.engine.shortlist import shortlisted
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.modes import BLOCK_MODEL, COPIES, HEADS, SMALL_MODEL
from fairseq_aggdec.generation.options import Decoding
from fairseq_aggdec.generation.samples import Batch, Sources
from fairseq_aggdec.generation.verifiers import Verifiers
from fairseq_aggdec.scheduling.costs import PYTORCH, Costs, DraftCost
from fairseq_aggdec.scheduling.draft_length import DraftLengths


@dataclass(frozen=True)
class BlockDraftOptions:
    """The model that drafts, and how much."""

    drafter: LoadedDrafter | None
    """None: the verifier's proposal heads draft; where one head is used, nothing does"""
    block_size: int
    """k, tokens of a draft; with proposal heads the count of heads used, head 1 included"""

    @property
    def max_draft_len(self) -> int:
        """The longest draft, in tokens; of k heads k - 1 draft."""
        return self.block_size - 1 if self.drafter is None else self.block_size


@dataclass
class Drafting:
    """What a generator drafts with, from batch to batch."""

    decoding: Decoding
    verifiers: Verifiers
    sources: Sources
    by_model: BlockDraftOptions
    encoders_seen: int = 0
    """`Engines.encoders_made` at the last batch"""

    @property
    def arithmetic(self) -> Arithmetic:
        """The arithmetic of the model that drafts: the verifier's where drafts may change the output (`gad++`)."""
        arithmetic = self.verifiers.engines.arithmetic
        if not self.decoding.is_lossless:
            return arithmetic
        # for each batch: fairseq moves and converts models
        return arithmetic_of_drafts(arithmetic, weight_of(self.verifiers.models[0]))

    @cached_property
    def costs(self) -> Costs:
        """The costs of a pass and of a draft on a CPU."""
        decoders = [model.decoder for model in self.verifiers.models]
        passes = [
            engine.backend.pass_cost if engine else PYTORCH
            for engine in self.verifiers.decoders()
        ]
        # of an ensemble's slowest
        cpu = max(passes, key=lambda cost: cost.reading)
        drafter = self.by_model.drafter
        if drafter is None:
            return Costs.of(decoders, cpu)
        decoder = drafter.model.decoder
        symbols = shortlisted(decoder) if drafter.is_autoregressive else None
        quantised = (
            self.arithmetic.precision != self.verifiers.engines.arithmetic.precision
        )
        size = self.by_model.block_size
        draft = DraftCost.of(
            decoder, size, decoders, cpu, quantised, drafter.is_autoregressive, symbols
        )
        return Costs.of(decoders, cpu, draft)

    @cached_property
    def lengths(self) -> DraftLengths:
        """How much of a draft pays on a CPU, learnt from all batches."""
        return DraftLengths(self.costs)


def copies(drafting: Drafting, batch: Batch) -> SourceCopyDrafter:
    """A drafter that copies from a row's `--draft-file`, or from its source."""
    decoding = drafting.decoding
    eos = drafting.sources.eos
    resumes = decoding.row.reads("copies") and decoding.copies != "paper"
    texts = [(source, 0) for source in drafting.sources.in_target(batch.source)]
    for row, draft in enumerate(batch.sample.get("drafts", ())):
        if draft:
            texts[row] = [*draft, eos], USER_DRAFT
    longest = decoding.max_draft_len
    return SourceCopyDrafter(
        SourceMatcher(text, eos, longest, kind, resumes) for text, kind in texts
    )


def blocks(drafting: Drafting, batch: Batch) -> BlockDrafter:
    """A drafter by the model of `BlockDraftOptions`."""
    return BlockDrafter(
        block_model(drafting, batch), drafting.by_model.block_size, drafting.sources.eos
    )


def heads(drafting: Drafting, batch: Batch) -> HeadDrafter:
    """A drafter by the proposal heads of the first verifier that has them; its engine verifies this batch, too."""
    for engine in drafting.verifiers.decoders():
        if engine is not None and engine.proposals is not None:
            return HeadDrafter(
                engine.proposals, drafting.by_model.block_size, drafting.sources.eos
            )
    raise AggdecError(
        f"--decoding {drafting.decoding.mode} needs this plugin's engine, which does not support "
        f"{drafting.verifiers.unsupported() or 'other heads'}"
    )


DRAFTERS: dict[str | None, Callable[[Drafting, Batch], Drafter]] = {
    None: lambda drafting, batch: NoDrafter(),
    COPIES: copies,
    BLOCK_MODEL: blocks,
    SMALL_MODEL: blocks,
    HEADS: heads,
}
"""functions that build the drafter of a batch, by `Mode.drafter`; they raise `AggdecError` for what has no engine"""


def block_model(drafting: Drafting, batch: Batch) -> Any:
    """The drafter's network, see `LoadedDrafter.start`, ready to draft for a batch."""
    drafter = drafting.by_model.drafter
    assert drafter is not None
    verifiers = drafting.verifiers
    dtype = weight_of(verifiers.models[0]).dtype
    if not drafting.decoding.row.verifies:
        return drafter.start(batch.net_input, dtype, arithmetic=drafting.arithmetic)
    if verifiers.engines.encoders_made != drafting.encoders_seen:
        drafting.encoders_seen = verifiers.engines.encoders_made
        drafter.forget_verifiers()
    return drafter.start(
        batch.net_input,
        dtype,
        verifiers.models,
        batch.encoder_outs,
        drafting.arithmetic,
    )


def decode_alone(
    drafting: Drafting, batch: Batch, temperature: float, keep_drafts: bool
) -> list[Decoded]:
    """What the model writes without a verifier; scores are divided by `temperature`."""
    assert drafting.by_model.drafter is not None
    network = block_model(drafting, batch)
    rules = replace(
        batch.rules,
        max_len=min(batch.rules.max_len, network.max_positions - 1),
        suppressed=(
            *batch.rules.suppressed,
            *drafting.by_model.drafter.model.decoder.never_drafted,
        ),
    )
    return decode_unverified(
        network,
        drafting.by_model.block_size,
        rules,
        batch.first_tokens,
        keep_drafts,
        temperature,
        batch.device,
    )


def schedule_of(drafting: Drafting, batch: Batch) -> DraftSchedule:
    """The schedule of a batch, by --drafts: it learns from batch to batch how many draft tokens pay.

    On a GPU, where a hundred tokens take the time of one, drafts are verified whole.
    """
    decoding = drafting.decoding
    is_auto = (
        decoding.drafts == "auto"
        and decoding.row.reads("drafts")
        and decoding.is_lossless
    )
    if not is_auto or drafting.verifiers.backend(batch.device).sync_is_costly:
        return VERIFY_ALL
    has_guesses = any(batch.sample.get("drafts", ()))
    drafting.lengths.start(encoded_length(batch), has_guesses)
    return drafting.lengths


def encoded_length(batch: Batch) -> int:
    """The positions that a decoder attends to, padding included: of speech fewer than there are frames."""
    encoded = batch.encoder_outs[0]
    if isinstance(encoded, dict):
        return encoded["encoder_out"][0].size(0)  # S x B x C
    return batch.source.size(1)  # of models without Transformers
