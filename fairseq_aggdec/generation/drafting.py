"""Which drafter a batch gets, and how much of its drafts is verified."""

from dataclasses import dataclass
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoderDecoderModel
from torch import Tensor

from fairseq_aggdec.decoding.acceptance import EXACT, Acceptance
from fairseq_aggdec.decoding.drafters.block import BlockDrafter
from fairseq_aggdec.decoding.drafters.heads import HeadDrafter
from fairseq_aggdec.decoding.drafters.hybrid import HybridDrafter, TrustCopies
from fairseq_aggdec.decoding.drafters.input_guided import FOREIGN, SourceCopyDrafter, SourceMatcher, align_source
from fairseq_aggdec.decoding.drafters.none import NoDrafter
from fairseq_aggdec.decoding.roles import BY_A_MODEL, VERIFY_ALL, Drafter, DraftSchedule
from fairseq_aggdec.engine.draft_decoder import DraftDecoder
from fairseq_aggdec.engine.engines import Engines, unsupported_decoder
from fairseq_aggdec.engine.proposing_decoder import ProposingDecoder
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.block_drafters import LoadedDrafter
from fairseq_aggdec.scheduling.costs import Costs, DraftCost, of_call
from fairseq_aggdec.scheduling.goodput import Goodput

_CONTINUES = "@@"
"""at the end of subwords that do not end a word, by subword-nmt"""


@dataclass(frozen=True)
class DraftOptions:
    """How `iad` and `hybrid` copy; see `SourceMatcher`."""

    min_suffix: int = 1
    max_suffix: int = 0
    max_draft_len: int = 0


@dataclass(frozen=True)
class BlockDraftOptions:
    """How `gad`, `gad++`, `nar`, `blockwise` and `hybrid` draft."""

    drafter: LoadedDrafter | None
    """None where the verifier's proposal heads draft"""
    block_size: int
    """tokens drafted at once; of proposal heads those used, the ordinary one included"""
    accept: Acceptance = EXACT


class Drafting:
    """Makes the drafters of a generator, and the schedule of how much of their drafts is verified."""

    def __init__(
        self,
        decoding: str,
        models: list[FairseqEncoderDecoderModel],
        engines: Engines,
        dictionaries: tuple[Dictionary, Dictionary],
        copying: DraftOptions,
        block: BlockDraftOptions | None,
    ) -> None:
        """
        Args:
            decoding: `greedy`, `iad`, `gad`, `gad++`, `blockwise` or `hybrid`; drafters of `nar` work alone.
            models: the verifiers, which reach their device and precision later.
            engines: of the verifiers.
            dictionaries: source and target.
            copying: for `iad` and `hybrid`.
            block: for the modes that draft with a model.
        """
        self._decoding = decoding
        self._models = models
        self._engines = engines
        self._to_target = symbol_map(*dictionaries)
        self._unfinished: list[bool] | None = None  # symbols that do not end a word; `hybrid` alone guesses words
        if decoding == "hybrid":
            unfinished = [symbol.endswith(_CONTINUES) for symbol in dictionaries[1].symbols]
            self._unfinished = unfinished if any(unfinished) else None
        self._pad, self._eos = dictionaries[1].pad(), dictionaries[1].eos()
        self._copying = copying
        self._block = block
        self._schedules: dict[str, Goodput] = {}  # by the kind of device

    def start(
        self, net_input: dict[str, Any], start: int, encoder_outs: list[dict[str, Any]], schedule: DraftSchedule
    ) -> Drafter:
        """The drafter of a batch.

        Args:
            net_input: as fairseq's encoder takes it.
            start: the decoder's first input.
            encoder_outs: what the verifiers' encoders returned for it.
            schedule: of the batch.

        Raises:
            AggdecError: the drafter or the heads cannot be used for decoding.
        """
        if self._decoding == "greedy":
            return NoDrafter()
        if self._decoding == "iad":
            return SourceCopyDrafter(self._matchers(net_input["src_tokens"], start, persists=False))
        model = NoDrafter() if self._block is None else self._model(net_input, encoder_outs)
        if self._decoding != "hybrid":
            return model
        matchers = self._matchers(net_input["src_tokens"], start, persists=True)
        estimates = schedule if isinstance(schedule, Goodput) else TrustCopies()
        return HybridDrafter(matchers, model, estimates)

    def schedule(self, device: torch.device) -> DraftSchedule:
        """What learns how much of the drafts is best verified."""
        if self._decoding == "greedy":
            return VERIFY_ALL
        if device.type not in self._schedules:
            self._schedules[device.type] = Goodput(
                self.costs(device), BY_A_MODEL, drafter_asks=self._decoding == "hybrid"
            )
        return self._schedules[device.type]

    def align(self, source: Tensor) -> list[list[int]]:
        """`align_source` with the symbols and dictionaries of the generator."""
        return align_source(source, self._pad, self._eos, self._to_target)

    def _matchers(self, source: Tensor, start: int, persists: bool) -> list[SourceMatcher]:
        options = self._copying
        limits = (options.min_suffix, options.max_suffix, options.max_draft_len)
        return [
            SourceMatcher(sentence, self._eos, start, *limits, persists, self._unfinished)
            for sentence in self.align(source)
        ]

    def _model(self, net_input: dict[str, Any], encoder_outs: list[dict[str, Any]]) -> Drafter:
        assert self._block is not None
        loaded = self._block.drafter
        if loaded is None:
            proposing = self._proposing_model()
            return HeadDrafter(proposing, self._block.block_size, self._eos, proposing.never_proposed)
        return BlockDrafter(self.block_model(net_input, encoder_outs), self._block.block_size, self._eos)

    def block_model(self, net_input: dict[str, Any], encoder_outs: list[dict[str, Any]]) -> DraftDecoder:
        """The block drafter's network, ready to draft for a batch; see `start`."""
        assert self._block is not None
        assert self._block.drafter is not None
        dtype = next(self._models[0].parameters()).dtype
        return self._block.drafter.start(net_input, dtype, self._models, encoder_outs, self._engines.arithmetic)

    def _proposing_model(self) -> ProposingDecoder:
        """The first verifier that has proposal heads, as it verifies this batch."""
        for model in self._models:
            engine = self._engines.decoder(model.decoder)
            if isinstance(engine, ProposingDecoder):
                return engine
        reason = next(filter(None, (unsupported_decoder(model.decoder) for model in self._models)), "other heads")
        raise AggdecError(f"--decoding {self._decoding} needs this plugin's engine, which does not support {reason}")

    def costs(self, device: torch.device) -> Costs:
        """Of a pass and a draft, on a kind of device."""
        verifiers, on_cpu = [model.decoder for model in self._models], device.type == "cpu"
        engines = [self._engines.decoder(verifier) for verifier in verifiers]
        ragged = all(engine is not None and engine.reads_ragged for engine in engines)
        draft = None
        if self._block is not None and self._block.drafter is not None:
            draft = DraftCost.of(self._block.drafter.model.decoder, self._block.block_size, verifiers, on_cpu)
        elif self._block is not None:  # proposal heads, the ordinary one included
            draft = DraftCost(self._block.block_size - 1)
        return Costs(of_call(verifiers, on_cpu), ragged, draft)


def symbol_map(source: Dictionary, target: Dictionary) -> list[int] | None:
    """The target symbol of each source symbol, V_source, `FOREIGN` where there is none; None for equal dictionaries."""
    if source.symbols == target.symbols:
        return None
    indices = {symbol: index for index, symbol in enumerate(target.symbols)}
    return [indices.get(symbol, FOREIGN) for symbol in source.symbols]
