"""Which drafter a batch gets, and how much of its drafts is verified."""

from dataclasses import dataclass
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoderDecoderModel
from torch import Tensor, nn

from fairseq_aggdec.decoding.acceptance import Acceptance, exact
from fairseq_aggdec.decoding.block_draft import BlockDrafter
from fairseq_aggdec.decoding.blockwise import HeadDrafter
from fairseq_aggdec.decoding.copy_trust import CopyTrust
from fairseq_aggdec.decoding.deferred import DeferredDrafter
from fairseq_aggdec.decoding.draft_width import DrafterCost, DraftWidth
from fairseq_aggdec.decoding.hybrid_draft import Copier, HybridDrafter
from fairseq_aggdec.decoding.input_guided import FOREIGN, SourceCopyDrafter, align_source
from fairseq_aggdec.decoding.loop import Drafter, NoDrafter
from fairseq_aggdec.decoding.single_source import SingleSourceDrafter, SourcesDrafter, align_sentence
from fairseq_aggdec.drafters import LoadedDrafter
from fairseq_aggdec.engine.engines import Engines, unsupported_decoder
from fairseq_aggdec.engine.proposing_decoder import ProposingDecoder
from fairseq_aggdec.errors import AggdecError

# What a call costs beside its rows, in multiplications with weights that a CPU does in the time: docs/engine-log.md.
_CALL = 50e6
"""the small operations of a block that stand outside its layers"""
_LAYER = 50e6
"""those of a layer"""
_DRAFT = 60e6
"""those of a draft that stand outside its block's layers"""
_START = 0.3
"""what a drafter's first call of a batch costs more, as a share of others"""
_CHOICE = 500
"""choosing a drafted token after the one before it, for each symbol"""
_READING = 19
"""reading a weight from memory, where a model's do not fit into the processor's caches"""
_CACHED = 8e6
"""how many weights do"""
_FREE_ROWS_OF_A_GPU = 256
"""A GPU has to read its weights for the time in which it could multiply some hundred rows."""

_COPIED = 0.9
"""how likely a copied token is taken to pass before any was seen: where a text does not repeat its source, one step of
a batch shows it; a lower number would never let it be seen"""

_CONTINUES = "@@"
"""at the end of subwords that do not end a word, by subword-nmt"""


@dataclass(frozen=True)
class DraftOptions:
    """How `iad` and `hybrid` copy; see `SourceCopyDrafter`."""

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
    accept: Acceptance = exact


class Drafting:
    """Makes the drafters of a generator."""

    def __init__(
        self,
        decoding: str,
        models: list[FairseqEncoderDecoderModel],
        engines: Engines,
        dictionaries: tuple[Dictionary, Dictionary],
        copying: DraftOptions,
        block: BlockDraftOptions | None,
        learns: bool,
    ) -> None:
        """
        Args:
            decoding: `greedy`, `iad`, `gad`, `gad++`, `blockwise` or `hybrid`; drafters of `nar` work alone.
            models: the verifiers, which reach their device and precision later.
            engines: theirs.
            dictionaries: source and target.
            copying: for `iad` and `hybrid`.
            block: for the modes that draft with a model.
            learns: let `hybrid` learn which copies to trust, and in batches ask its drafter only where enough rows have
                no copy to pay for it.
        """
        self._learns = learns
        self._decoding = decoding
        self._models = models
        self._engines = engines
        self._to_target = symbol_map(*dictionaries)
        self._unfinished: list[bool] | None = None  # symbols that do not end a word; `hybrid` alone guesses words
        if decoding == "hybrid":
            unfinished = [symbol.endswith(_CONTINUES) for symbol in dictionaries[1].symbols]
            self._unfinished = unfinished if any(unfinished) else None
        self._unfinished_on: dict[torch.device, Tensor] = {}  # the same, for batches
        self._pad, self._eos = dictionaries[1].pad(), dictionaries[1].eos()
        self._copying = copying
        self._block = block
        self._trust = CopyTrust(self._cost()) if learns and decoding == "hybrid" and block is not None else None

    def start(self, net_input: dict[str, Any], start: int, encoder_outs: list[dict[str, Any]]) -> Drafter:
        """The drafter of a batch.

        Args:
            net_input: as fairseq's encoder takes it.
            start: the decoder's first input.
            encoder_outs: what the verifiers' encoders returned for it.

        Raises:
            AggdecError: the drafter or the heads cannot be used for decoding.
        """
        if self._decoding == "greedy":
            return NoDrafter()
        if self._decoding == "iad":
            return self._iad(net_input["src_tokens"], start)
        model = NoDrafter() if self._block is None else self._model(net_input, encoder_outs)
        if self._decoding != "hybrid":
            return model
        copier = self._copier(net_input["src_tokens"], start, persists=True)
        return HybridDrafter(copier, model, self._cost() if self._learns else 0.0, self._trust)

    def widths(self, device: torch.device) -> DraftWidth | None:
        """What learns how long drafts are best; None for `greedy`, which has none."""
        if self._decoding == "greedy":
            return None
        decoders = [model.decoder for model in self._models]
        row = sum(map(_row_cost, decoders))
        free_rows = sum(map(_call_cost, decoders)) / row if device.type == "cpu" else _FREE_ROWS_OF_A_GPU
        if self._decoding in ("iad", "hybrid") or self._block is None or self._block.drafter is None:
            # hybrid seldom asks, and proposal heads cost next to nothing
            return DraftWidth(free_rows, acceptance=_COPIED) if self._block is None else DraftWidth(free_rows)
        drafter = self._block.drafter.model.decoder
        share, projection = self._cost(), drafter.output_projection.weight
        call = (_call_cost(drafter) - _CALL + _DRAFT) / row if device.type == "cpu" else free_rows * share
        choice = _CHOICE * projection.size(0) / row
        return DraftWidth(free_rows, DrafterCost(call, share + choice, share - projection.numel() / row, _START * call))

    def align(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """`align_source` with the symbols and dictionaries of the generator."""
        return align_source(source, self._pad, self._eos, self._symbols_on(source.device))

    def _iad(self, source: Tensor, start: int) -> Drafter:
        if source.size(0) == 1 or source.device.type != "cpu":
            return self._copier(source, start, persists=False)
        return DeferredDrafter(lambda rows: self._copier(source if rows is None else source[rows], start, False))

    def _copier(self, source: Tensor, start: int, persists: bool) -> Copier:
        options = self._copying
        limits = (options.min_suffix, options.max_suffix, options.max_draft_len, start)
        if source.device.type == "cpu":
            aligned = [align_sentence(sentence, self._pad, self._eos, self._to_target) for sentence in source.split(1)]
            if len(aligned) == 1:
                return SingleSourceDrafter(aligned[0], self._eos, *limits, persists, self._unfinished)
            return SourcesDrafter(aligned, self._eos, *limits, persists, self._unfinished)
        if self._unfinished is not None and source.device not in self._unfinished_on:
            self._unfinished_on[source.device] = torch.tensor(self._unfinished, device=source.device)
        unfinished = self._unfinished_on.get(source.device)
        return SourceCopyDrafter(*self.align(source), self._eos, *limits, persists, unfinished)

    def _model(self, net_input: dict[str, Any], encoder_outs: list[dict[str, Any]]) -> Drafter:
        assert self._block is not None
        loaded = self._block.drafter
        if loaded is None:
            proposing = self._proposing_model()
            return HeadDrafter(proposing, self._block.block_size, self._eos, proposing.never_proposed)
        dtype = next(self._models[0].parameters()).dtype
        model = loaded.start(net_input, dtype, self._models, encoder_outs, self._engines.arithmetic)
        return BlockDrafter(model, self._block.block_size, self._eos)

    def _proposing_model(self) -> ProposingDecoder:
        """The first verifier that has proposal heads, as it verifies this batch."""
        for model in self._models:
            engine = self._engines.decoder(model.decoder)
            if isinstance(engine, ProposingDecoder):
                return engine
        reason = next(filter(None, (unsupported_decoder(model.decoder) for model in self._models)), "other heads")
        raise AggdecError(f"--decoding {self._decoding} needs this plugin's engine, which does not support {reason}")

    def _cost(self) -> float:
        """The drafter's cost of a row in the verifiers'; proposal heads cost next to nothing."""
        if self._block is None or self._block.drafter is None:
            return 0.0
        return _row_cost(self._block.drafter.model.decoder) / sum(_row_cost(model.decoder) for model in self._models)

    def _symbols_on(self, device: torch.device) -> Tensor | None:
        return None if self._to_target is None else self._to_target.to(device)


def _row_cost(decoder: nn.Module) -> int:
    """Multiplications for one token, those with the source's keys and values aside."""
    weights = decoder.named_parameters(remove_duplicate=False)  # the projection's may be the embedding's
    return sum(weight.numel() for name, weight in weights if weight.dim() >= 2 and "embed" not in name)


def _call_cost(decoder: Any) -> float:
    """What a block costs a CPU whatever it holds, in multiplications."""
    weights = _row_cost(decoder)
    layers = len(getattr(decoder, "layers", ()))  # fairseq's convolutional decoder calls them otherwise
    return _CALL + _LAYER * layers + (_READING * weights if weights > _CACHED else 0)


def symbol_map(source: Dictionary, target: Dictionary) -> Tensor | None:
    """The target symbol of each source symbol, V_source, `FOREIGN` where there is none; None for equal dictionaries."""
    if source.symbols == target.symbols:
        return None
    indices = {symbol: index for index, symbol in enumerate(target.symbols)}
    return torch.tensor([indices.get(symbol, FOREIGN) for symbol in source.symbols])
