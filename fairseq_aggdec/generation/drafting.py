"""The choice of a drafter and of a draft schedule for each batch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoderDecoderModel
from torch import Tensor

from fairseq_aggdec.decoding.drafters.block import BlockDrafter
from fairseq_aggdec.decoding.drafters.heads import HeadDrafter
from fairseq_aggdec.decoding.drafters.input_guided import (
    FOREIGN,
    OWN,
    Form,
    SourceCopyDrafter,
    SourceMatcher,
    align_source,
)
from fairseq_aggdec.decoding.drafters.none import NoDrafter
from fairseq_aggdec.decoding.roles import VERIFY_ALL, Drafter, DraftSchedule
from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.choose_backend import arithmetic_of_drafts, choose_backend, weight_of
from fairseq_aggdec.engine.drafter import LoadedDrafter
from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.engine.shortlist import shortlisted
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.acceptance import acceptance_of
from fairseq_aggdec.generation.modes import BLOCK_MODEL, COPIES, HEADS, SMALL_MODEL
from fairseq_aggdec.generation.options import Decoding
from fairseq_aggdec.scheduling.costs import PYTORCH, Costs, DraftCost
from fairseq_aggdec.scheduling.draft_length import DraftLengths


@dataclass(frozen=True)
class BlockDraftOptions:
    """The model that drafts, and how much."""

    drafter: LoadedDrafter | None
    """None: the verifier's proposal heads draft"""
    block_size: int
    """k, the number of tokens of a draft; with proposal heads the number of heads used, head 1 included"""

    @property
    def max_draft_len(self) -> int:
        """The longest draft, in tokens; of k heads k - 1 draft."""
        return self.block_size - 1 if self.drafter is None else self.block_size

    @property
    def most_committed(self) -> int:
        """The largest number of tokens that an iteration commits."""
        return self.max_draft_len + 1


class Batch(NamedTuple):
    """The batch for which a drafter is built."""

    net_input: dict[str, Any]
    encoder_outs: list[dict[str, Any]]
    """output of each verifier's encoder"""
    drafts: Sequence[list[int]] = ()
    """a draft of one's own for each sentence, without EOS; empty ones, and none at all: the source is copied"""


class Drafting:
    """Builds a drafter for each batch of a generator, and its draft schedule."""

    def __init__(
        self,
        models: list[FairseqEncoderDecoderModel],
        decoding: Decoding,
        src_dict: Dictionary | None,
        tgt_dict: Dictionary,
        eos: int,
        block_draft: BlockDraftOptions | None,
        engines: Engines,
        form: Form | None = None,
    ) -> None:
        """`models`: the verifiers; fairseq moves them to their device and precision later. `form`: of the sources.

        Raises `AggdecError` for an option of acceptance that the vocabulary or the drafts cannot honour.
        """
        self._models = models
        self._decoding = decoding
        self._engines = engines
        self._block = block_draft
        self._form = form
        most_committed = 1 if block_draft is None else block_draft.most_committed
        self.accept = acceptance_of(decoding, tgt_dict, most_committed)
        """which draft tokens pass"""
        self._src_dict = src_dict
        self._to_target = None if src_dict is None else symbol_map(src_dict, tgt_dict)
        self._pad, self._eos = tgt_dict.pad(), eos
        self._encoders_seen = 0  # `Engines.encoders_made` at the last batch
        self._schedules: dict[torch.device, DraftLengths] = {}

    def make_drafter(self, batch: Batch) -> Drafter:
        """The drafter of a batch, by `DRAFTERS`; raises `AggdecError` where the engine does not support its model."""
        name = self._decoding.row.drafter
        return NoDrafter() if name is None else DRAFTERS[name](self, batch)

    def schedule(self, source: Tensor) -> DraftSchedule:
        """The schedule of a batch, by --drafts: it learns from batch to batch how many draft tokens pay.

        Where padding is free, as on a GPU, drafts are verified whole.
        """
        is_auto = self._decoding.drafts == "auto" and self._decoding.row.reads("drafts") and self.accept.is_exact
        if not is_auto:
            return VERIFY_ALL
        model, device = self._models[0], source.device
        engine = self._engines.decoder(model.decoder)
        backend = choose_backend(weight_of(model, device), AS_THE_MODEL) if engine is None else engine.backend
        if backend.padding_is_free:
            return VERIFY_ALL
        if device not in self._schedules:
            self._schedules[device] = DraftLengths(self.costs())
        self._schedules[device].start(source.size(1))
        return self._schedules[device]

    def align(self, source: Tensor) -> list[list[int]]:
        """Each row's source in the target's vocabulary, see `align_source`; nothing where the source is no text."""
        if self._src_dict is None:
            return [[self._eos]] * source.size(0)
        rows = align_source(source, self._pad, self._eos, self._to_target)
        return rows if self._form is None else [self._form.as_output(row, self._eos) for row in rows]

    def copier(self, batch: Batch) -> SourceCopyDrafter:
        """A drafter that copies from each row's own draft, or from its source."""
        decoding = self._decoding
        resumes = decoding.row.reads("copies") and decoding.copies != "paper"
        texts = [(source, 0) for source in self.align(batch.net_input["src_tokens"])]
        for row, draft in enumerate(batch.drafts):
            if draft:
                texts[row] = [*draft, self._eos], OWN
        return SourceCopyDrafter(
            SourceMatcher(text, self._eos, decoding.max_draft_len, kind, resumes) for text, kind in texts
        )

    def block_drafter(self, batch: Batch) -> BlockDrafter:
        """A drafter by the model of `BlockDraftOptions`."""
        assert self._block is not None
        return BlockDrafter(self.block_model(batch.net_input, batch.encoder_outs), self._block.block_size, self._eos)

    def head_drafter(self, batch: Batch) -> HeadDrafter:
        """A drafter by the proposal heads of the first verifier that has them; its engine verifies this batch, too."""
        assert self._block is not None
        for model in self._models:
            engine = self._engines.decoder(model.decoder)
            if engine is not None and engine.proposals is not None:
                return HeadDrafter(engine.proposals, self._block.block_size, self._eos)
        reason = next(filter(None, (self._engines.unsupported(model.decoder) for model in self._models)), "other heads")
        raise AggdecError(
            f"--decoding {self._decoding.mode} needs this plugin's engine, which does not support {reason}"
        )

    def block_model(self, net_input: dict[str, Any], encoder_outs: list[dict[str, Any]]) -> Any:
        """The drafter's network, see `LoadedDrafter.start`, ready to draft for a batch."""
        assert self._block is not None
        drafter = self._block.drafter
        assert drafter is not None
        dtype = weight_of(self._models[0]).dtype
        if self._engines.encoders_made != self._encoders_seen:
            self._encoders_seen = self._engines.encoders_made
            drafter.forget_verifiers()
        return drafter.start(net_input, dtype, self._models, encoder_outs, self._drafters_arithmetic())

    def _drafters_arithmetic(self) -> Arithmetic:
        """The drafter's arithmetic: the verifier's own where draft tokens may change the output (`gad++`)."""
        if not self.accept.is_exact:
            return self._engines.arithmetic
        # for each batch: fairseq moves and converts models
        return arithmetic_of_drafts(self._engines.arithmetic, weight_of(self._models[0]))

    def costs(self) -> Costs:
        """The costs of a pass and of a draft on a CPU."""
        verifiers = [model.decoder for model in self._models]
        engines = [self._engines.decoder(verifier) for verifier in verifiers]
        of_each = [None if engine is None else engine.backend.pass_cost for engine in engines]
        cpu = max((cost or PYTORCH for cost in of_each), key=lambda cost: cost.reading)  # of an ensemble's slowest
        draft = None
        if self._block is not None and self._block.drafter is not None:
            quantised = self._drafters_arithmetic().precision == "int8" != self._engines.arithmetic.precision
            drafter = self._block.drafter
            decoder, steps = drafter.model.decoder, drafter.is_stepwise
            symbols = shortlisted(decoder) if steps else None
            draft = DraftCost.of(decoder, self._block.block_size, verifiers, cpu, quantised, steps, symbols)
        return Costs.of(verifiers, cpu, draft)


DRAFTERS: dict[str, Callable[[Drafting, Batch], Drafter]] = {
    COPIES: Drafting.copier,
    BLOCK_MODEL: Drafting.block_drafter,
    SMALL_MODEL: Drafting.block_drafter,
    HEADS: Drafting.head_drafter,
}
"""functions that build the drafter of a batch, by `Mode.drafter`"""


def symbol_map(source: Dictionary, target: Dictionary) -> list[int] | None:
    """The target symbol of each source symbol, V_source, `FOREIGN` where there is none; None for equal dictionaries."""
    if source.symbols == target.symbols:
        return None
    indices = {symbol: index for index, symbol in enumerate(target.symbols)}
    return [indices.get(symbol, FOREIGN) for symbol in source.symbols]
