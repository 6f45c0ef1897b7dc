"""Which drafter a batch gets, and how much of its drafts is verified."""

from dataclasses import dataclass
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoderDecoderModel
from torch import Tensor

from fairseq_aggdec.decoding.drafters.block import BlockDrafter
from fairseq_aggdec.decoding.drafters.heads import HeadDrafter
from fairseq_aggdec.decoding.drafters.hybrid import HybridDrafter, TrustCopies
from fairseq_aggdec.decoding.drafters.input_guided import FOREIGN, SourceCopyDrafter, SourceMatcher, align_source
from fairseq_aggdec.decoding.drafters.none import NoDrafter
from fairseq_aggdec.decoding.roles import BY_A_MODEL, VERIFY_ALL, Drafter, DraftSchedule
from fairseq_aggdec.engine.arithmetic.precision import Arithmetic
from fairseq_aggdec.engine.draft_decoder import DraftDecoder
from fairseq_aggdec.engine.engines import Engines, LoadedDrafter
from fairseq_aggdec.engine.proposing_decoder import ProposingDecoder
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.scheduling.costs import KERNELS, KERNELS_16_BITS, PYTORCH, Costs, DraftCost
from fairseq_aggdec.scheduling.goodput import Goodput

_CONTINUES = "@@"
"""subword-nmt's mark at the end of a subword that does not end its word"""


@dataclass(frozen=True)
class CopyLimits:
    """Limits in tokens for the modes that copy, `iad`, `iad++` and `hybrid`; `SourceMatcher` explains them."""

    min_suffix: int = 1
    max_suffix: int = 0
    max_draft_len: int = 0


@dataclass(frozen=True)
class BlockDraftOptions:
    """What drafts blocks in `gad`, `gad++`, `nar`, `blockwise` and `hybrid`."""

    drafter: LoadedDrafter | None
    """None: the verifier's proposal heads draft"""
    block_size: int
    """k, the number of tokens drafted at once; of proposal heads the number that is used, head 1 included"""

    @property
    def longest(self) -> int:
        """The most tokens of a draft: of k heads the last k-1 draft."""
        return self.block_size - 1 if self.drafter is None else self.block_size

    @property
    def most_committed(self) -> int:
        """The most tokens that an iteration commits."""
        return self.longest + 1


class Drafting:
    """Makes a drafter for each batch of a generator, and the schedule that decides how much is drafted and verified."""

    def __init__(
        self,
        decoding: str,
        models: list[FairseqEncoderDecoderModel],
        engines: Engines,
        dictionaries: tuple[Dictionary, Dictionary],
        copying: CopyLimits,
        block: BlockDraftOptions | None,
        is_exact: bool = True,
    ) -> None:
        """
        Args:
            decoding: `greedy`, `iad`, `iad++`, `gad`, `gad++`, `blockwise` or `hybrid` (`nar` has none).
            models: the verifiers; fairseq moves them to their device and precision after this.
            dictionaries: the source's and the target's.
            block: for the modes in which a model drafts.
            is_exact: whether nothing but the verifiers' own choices passes.
        """
        self._decoding = decoding
        self._models = models
        self._engines = engines
        self._to_target = symbol_map(*dictionaries)
        self._unfinished: list[bool] | None = None  # V, symbols that do not end a word: `hybrid` guesses words
        if decoding == "hybrid":
            unfinished = [symbol.endswith(_CONTINUES) for symbol in dictionaries[1].symbols]
            self._unfinished = unfinished if any(unfinished) else None
        self._pad, self._eos = dictionaries[1].pad(), dictionaries[1].eos()
        self._copying = copying
        self._block = block
        self._is_exact = is_exact
        self._encoders_seen = 0  # of those that the engines have made
        self._schedules: dict[str, Goodput] = {}  # by type of device
        self._arithmetics: dict[tuple[str, torch.dtype], Arithmetic] = {}  # of the drafter, for a verifier there

    def make_drafter(
        self, net_input: dict[str, Any], first_token: int, encoder_outs: list[dict[str, Any]], schedule: DraftSchedule
    ) -> Drafter:
        """The drafter of a batch, whose source the verifiers' encoders have read.

        Raises:
            AggdecError: the engine does not support the drafter or the model with the heads.
        """
        if self._decoding == "greedy":
            return NoDrafter()
        if self._decoding in ("iad", "iad++"):
            return self._copier(net_input["src_tokens"], first_token, persists=False)
        model = NoDrafter() if self._block is None else self._model(net_input, encoder_outs)
        if self._decoding != "hybrid":
            return model
        copier = self._copier(net_input["src_tokens"], first_token, persists=True)
        return HybridDrafter(copier, model, schedule if isinstance(schedule, Goodput) else TrustCopies())

    def schedule(self, device: torch.device) -> DraftSchedule:
        """The schedule that learns, from batch to batch, how many draft tokens are worth verifying on a device."""
        return VERIFY_ALL if self._decoding == "greedy" else self._goodput(device)

    def reads_from_memory(self, device: torch.device) -> bool:
        """Whether each pass reads the verifiers' weights from memory, since they do not fit into a CPU's caches."""
        return self._goodput(device).costs.read > 0

    def _goodput(self, device: torch.device) -> Goodput:
        if device.type not in self._schedules:
            self._schedules[device.type] = Goodput(
                self.costs(device), BY_A_MODEL, drafter_asks=self._decoding == "hybrid"
            )
        return self._schedules[device.type]

    def align(self, source: Tensor) -> list[list[int]]:
        """Each row's source in the target's vocabulary, see `align_source`."""
        return align_source(source, self._pad, self._eos, self._to_target)

    def _copier(self, source: Tensor, first_token: int, persists: bool) -> SourceCopyDrafter:
        options = self._copying
        limits = (options.min_suffix, options.max_suffix, options.max_draft_len)
        return SourceCopyDrafter(
            SourceMatcher(sentence, self._eos, first_token, *limits, persists, self._unfinished)
            for sentence in self.align(source)
        )

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
        if self._engines.encoders_made != self._encoders_seen:
            self._encoders_seen = self._engines.encoders_made
            self._block.drafter.forget_verifiers()
        return self._block.drafter.start(net_input, dtype, self._models, encoder_outs, self._drafters_arithmetic())

    def _drafters_arithmetic(self) -> Arithmetic:
        """How the block drafter computes; where its own wording may pass, in `gad++`, as the verifier does."""
        assert self._block is not None
        assert self._block.drafter is not None
        if not self._is_exact:
            return self._engines.arithmetic
        weight = next(self._models[0].parameters())
        where = (weight.device.type, weight.dtype)  # fairseq moves and converts models
        if where not in self._arithmetics:
            self._arithmetics[where] = self._engines.arithmetic.for_drafts(weight)
        return self._arithmetics[where]

    def _proposing_model(self) -> ProposingDecoder:
        """The engine of the first verifier with proposal heads, which verifies this batch as well."""
        for model in self._models:
            engine = self._engines.decoder(model.decoder)
            if isinstance(engine, ProposingDecoder):
                return engine
        reason = next(filter(None, (self._engines.unsupported(model.decoder) for model in self._models)), "other heads")
        raise AggdecError(f"--decoding {self._decoding} needs this plugin's engine, which does not support {reason}")

    @property
    def by_kernels(self) -> bool:
        """Whether there are kernels for the verifiers' layers."""
        engines = [self._engines.decoder(model.decoder) for model in self._models]
        return all(engine is not None and engine.by_kernels for engine in engines)

    def costs(self, device: torch.device) -> Costs:
        """Of a pass and a draft, on a kind of device."""
        verifiers = [model.decoder for model in self._models]
        engines = [self._engines.decoder(verifier) for verifier in verifiers]
        cpu = None
        if device.type == "cpu":
            narrow = all(engine is not None and engine.narrow for engine in engines)
            cpu = KERNELS_16_BITS if narrow else KERNELS if self.by_kernels else PYTORCH
        ragged = all(engine is not None and engine.can_be_ragged for engine in engines)
        draft = None
        if self._block is not None and self._block.drafter is not None:
            quantised = self._drafters_arithmetic().precision == "int8" != self._engines.arithmetic.precision
            decoder = self._block.drafter.model.decoder
            draft = DraftCost.of(decoder, self._block.block_size, verifiers, cpu, quantised)
        elif self._block is not None:  # proposal heads
            draft = DraftCost(self._block.longest)
        return Costs.of(verifiers, cpu, ragged, draft)


def symbol_map(source: Dictionary, target: Dictionary) -> list[int] | None:
    """The target symbol of each source symbol, V_source, `FOREIGN` where there is none; None for equal dictionaries."""
    if source.symbols == target.symbols:
        return None
    indices = {symbol: index for index, symbol in enumerate(target.symbols)}
    return [indices.get(symbol, FOREIGN) for symbol in source.symbols]
