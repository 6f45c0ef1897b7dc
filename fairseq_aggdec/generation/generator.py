"""The generator that runs the decoding loop: fairseq's samples in, fairseq's hypotheses out."""

import math
import time
from collections.abc import Sequence
from contextlib import nullcontext
from inspect import signature
from itertools import chain
from typing import Any, Self

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from fairseq_aggdec.compat.model_locks import alone_with
from fairseq_aggdec.compat.plain_attention import plain_attention
from fairseq_aggdec.decoding.drafters.input_guided import PromptTemplate
from fairseq_aggdec.decoding.drafters.none import NoDrafter
from fairseq_aggdec.decoding.loop import draft_verify_accept
from fairseq_aggdec.decoding.roles import Drafter
from fairseq_aggdec.decoding.stats import BeamTotals, DecodingTotals
from fairseq_aggdec.decoding.tokens import Decoded
from fairseq_aggdec.engine.choose_backend import on_device
from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.engine.loops.ask import DeviceLoop, device_loop
from fairseq_aggdec.engine.loops.rows import RowSearch
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.acceptance import acceptance_of
from fairseq_aggdec.generation.drafting import (
    DRAFTERS,
    BlockDraftOptions,
    Drafting,
    decode_alone,
    schedule_of,
)
from fairseq_aggdec.generation.hypotheses import NBest, hypotheses_of, write_statistics
from fairseq_aggdec.generation.options import Decoding
from fairseq_aggdec.generation.samples import (
    Batch,
    Sources,
    batch_of,
    check_search,
    effective_ngram_size,
)
from fairseq_aggdec.generation.stats_file import StatsFile
from fairseq_aggdec.generation.verifiers import Verifiers


class AggressiveGenerator(SequenceGenerator):
    """Drop-in for fairseq's generator at beam 1: same samples in, same hypotheses out, fewer decoder passes.

    Lossless modes return fairseq's tokens and scores. `gad++` and `iad++` accept near misses and may differ; `nar`
    returns the drafter's output unverified.

    Beside fairseq's entries a hypothesis has `stats`, its `SentenceStats`, `steps`, how many iterations it took, and
    `history`, the draft of each iteration; fairseq-generate prints the latter under `--print-step` and
    `--retain-iter-history`. `attention` is empty. Only one thread decodes at a time.
    """

    def __init__(
        self,
        stock: SequenceGenerator,
        decoding: Decoding,
        src_dict: Dictionary | None,
        *,
        block_draft: BlockDraftOptions | None = None,
        keep_drafts: bool = True,
        stats_file: StatsFile | None = None,
        engines: Engines | None = None,
        form: PromptTemplate | None = None,
    ) -> None:
        """Take the models and all search options from `stock`, the generator that fairseq's task built.

        `decoding` is in a mode without alternatives; `src_dict`: None where the source is no text; `block_draft`:
        None: no model drafts; `keep_drafts`: fill `history` of the hypotheses; `engines`: to be shared by generators;
        `form`: of sources, of which the text alone is copied.

        Raises `AggdecError` where `stock` is of another type, or has an option that the mode cannot honour.
        """
        mode = decoding.row
        _check_stock(stock, decoding)

        # fairseq's generator with all its options
        torch.nn.Module.__init__(self)
        self.__dict__.update(stock.__dict__)

        # what decodes, what drafts, and which drafts pass
        self.decoding = decoding
        self.mode = mode
        self.block_draft = block_draft or BlockDraftOptions(None, 1)
        self.totals = BeamTotals() if mode.has_beam else DecodingTotals()
        check_search(self, mode.name)
        self.no_repeat_ngram_size = effective_ngram_size(self, decoding)
        self._engines = engines or Engines()
        self._verifiers = Verifiers(self.model.models, self._engines, self.tgt_dict)
        self._sources = Sources(src_dict, self.tgt_dict, self.eos, form)
        self._drafting = Drafting(
            decoding, self._verifiers, self._sources, self.block_draft
        )
        self._accept = acceptance_of(
            decoding, self.tgt_dict, 1 + self.block_draft.max_draft_len
        )
        self._keep_drafts = keep_drafts
        self._stats_file = stats_file

    @classmethod
    def of(
        cls,
        models: list[FairseqEncoderDecoderModel],
        tgt_dict: Dictionary,
        *,
        src_dict: Dictionary | None,
        decoding: str,
        **options: Any,
    ) -> Self:
        """Build a generator without a task.

        Args:
            models: the verifier, or an ensemble of verifiers.
            decoding: the name of a mode.
            options: arguments of fairseq's `SequenceGenerator`, fields of `Decoding`, arguments of this class.
        """
        of_fairseq = arguments_of(SequenceGenerator, options)
        how = Decoding(decoding, **arguments_of(Decoding, options))
        if not how.row.has_beam:
            of_fairseq["beam_size"] = 1
        with alone_with(getattr(models, "models", models)):  # of fairseq's ensemble
            stock = SequenceGenerator(models, tgt_dict, **of_fairseq)
        return cls(stock, how, src_dict, **options)

    def __prepare_scriptable__(self) -> None:
        """What `torch.jit.script` calls first."""
        raise AggdecError(
            f"TorchScript cannot compile --decoding {self.mode.name}: export fairseq's own generator"
        )

    def _generate(
        self,
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        constraints: Tensor | None = None,
        bos_token: int | None = None,
    ) -> list[NBest]:
        if constraints is not None:
            raise AggdecError(
                f"--constraints cannot be combined with --decoding {self.mode.name}; use --decoding beam"
            )
        if list(self.model.models) != self._verifiers.models:
            raise AggdecError(
                "the generator's models were replaced: make a new generator for others"
            )
        batch = batch_of(self, self.decoding, sample, prefix_tokens, bos_token)
        drafter = self.block_draft.drafter
        drafters = nullcontext() if drafter is None else drafter.batch()

        # hold what other threads may decode with, and look at the weights
        with (
            self._engines.batch(),
            drafters,
            on_device(batch.device),
            plain_attention(self._verifiers.models),
        ):
            # decode, and again where the weights turn out to have changed; a GPU says so only at the end
            began = time.perf_counter()
            decoded = self._decode(batch)
            were_current = self._engines.finish_check()
            if drafter is not None:
                were_current &= drafter.finish_check()
            if not were_current:
                decoded = self._decode(batch)
            seconds = time.perf_counter() - began
            hypotheses = hypotheses_of(self, batch, decoded)

            # count, and write, the best hypothesis of each sentence
            best = [sentences[0] for sentences in decoded]
            if self._stats_file is not None:
                write_statistics(
                    self._stats_file,
                    self,
                    self._sources,
                    batch,
                    best,
                    self.totals.sentences,
                    seconds,
                )
            for sentence in best:
                self.totals.add(sentence.stats)
        return hypotheses

    def _decode(self, batch: Batch) -> Sequence[Sequence[Decoded]]:
        """The n-best list of each sentence."""
        if self.mode.verifies:
            decoded = self._decode_verified(self._verifiers.encode(batch))
        else:
            decoded = decode_alone(
                self._drafting, batch, self.temperature, self._keep_drafts
            )
        return [[sentence] for sentence in decoded]

    def _decode_verified(self, batch: Batch) -> list[Decoded]:
        schedule = schedule_of(self._drafting, batch)
        drafter = self.make_drafter(batch)

        # on the device, if a loop there takes the batch and comes to its end
        loop = self._device_loop(
            batch, RowSearch(drafter, self._accept, schedule, self._keep_drafts)
        )
        if loop is not None:
            found = loop(
                self._verifiers.start(batch, self.temperature), batch.first_tokens
            )
            if found is not None:
                return found
            # the loop may have begun with the other one
            drafter = self.make_drafter(batch)

        # a draft token that overflows in half precision spoils its whole block, since hidden tokens have weight zero,
        # and zero times infinity is NaN. Without drafts only chosen tokens are read, as in fairseq
        for one in (drafter, NoDrafter()):
            decoded = draft_verify_accept(
                one,
                self._verifiers.start(batch, self.temperature),
                batch.rules,
                batch.first_tokens,
                accept=self._accept,
                schedule=schedule,
                keep_drafts=self._keep_drafts,
                device=batch.device,
            )
            if not any(
                map(
                    math.isnan,
                    chain.from_iterable(sentence.log_probs for sentence in decoded),
                )
            ):
                break
        return decoded

    def _device_loop(self, batch: Batch, search: Any) -> DeviceLoop | None:
        """See `engine.loops`, which is asked here alone."""
        return device_loop(self._verifiers.decoders(), batch.rules, search)

    def make_drafter(self, batch: Batch) -> Drafter:
        """The drafter of a batch; subclasses may return another."""
        return DRAFTERS[self.mode.drafter](self._drafting, batch)


def _check_stock(stock: SequenceGenerator, decoding: Decoding) -> None:
    if type(stock) is not SequenceGenerator:
        raise AggdecError(
            f"{type(stock).__name__}: --decoding {decoding.mode} replaces fairseq's SequenceGenerator alone; "
            "use --decoding beam"
        )
    if stock.beam_size != 1 and not decoding.row.has_beam:
        raise AggdecError(
            f"--decoding {decoding.mode} has a beam of one, and not of {stock.beam_size}"
        )


def arguments_of(kind: type, options: dict[str, Any]) -> dict[str, Any]:
    """Take the arguments of a class out of some options."""
    return {
        name: options.pop(name)
        for name in signature(kind).parameters
        if name in options
    }
