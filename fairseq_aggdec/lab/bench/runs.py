"""Makes the runners of modes on one subject, and compares them: for `aggdec bench`, `verify`, `tune` and `drafter`."""

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import torch
from fairseq.models import BaseFairseqModel

from fairseq_aggdec.generation.modes import AGGRESSIVE, GREEDY, SMALL_MODEL
from fairseq_aggdec.generation.options import Decoding
from fairseq_aggdec.lab.bench import ctranslate2_runner, nat_runner
from fairseq_aggdec.lab.bench.ctranslate2_runner import (
    CTranslate2Runner,
    TranslatorProcess,
)
from fairseq_aggdec.lab.bench.fairseq_runner import FairseqRunner
from fairseq_aggdec.lab.bench.modes import CTRANSLATE2, ModeSpec, NatPeer
from fairseq_aggdec.lab.bench.nat_runner import NatRunner
from fairseq_aggdec.lab.bench.oracle import Texts, texts_to_copy, texts_to_propose
from fairseq_aggdec.lab.bench.rounds import ModeResult, ModeRunner, compare, decode_once
from fairseq_aggdec.lab.bench.subject import Subject, check_device
from fairseq_aggdec.lab.verify.differences import kept_in
from fairseq_aggdec.lab.verify.references import References, refuse_differing
from fairseq_aggdec.tasks import loading
from fairseq_aggdec.tasks.draft_file import draft_tokens

Loaded = tuple[Any, list[BaseFairseqModel]]


class Runs(ExitStack):
    """Makes the runners of a subject, and loads each model once.

    At the end of its `with`, models are freed, other processes ended and temporary files removed.
    """

    def __init__(self, subject: Subject) -> None:
        """Raises `AggdecError` where there is no GPU."""
        check_device(subject.device)
        super().__init__()
        self.subject = subject
        self.references = References(subject.device, subject.block_ngrams)
        self._task: Any = None
        # what is made once, for the same arguments
        self._models = cache(self._load_models)
        self._nat = cache(self._load_nat)
        self.callback(self._models.cache_clear)
        self.callback(self._nat.cache_clear)
        self._translator = cache(self._start_ctranslate2)
        self._greedy = cache(self._greedy_outputs)

    @property
    def task(self) -> Any:
        """A task, for its dictionaries, which do not depend on the precision."""
        return self._task or self.load("fp32")[0]

    def load(self, precision: str, stock: bool = False, beam: int = 1) -> Loaded:
        """The task and the models of a precision, with their engine and their drafter.

        Args:
            precision: one of `PRECISIONS`.
            stock: whether fairseq's search decodes, which needs the whole model in that precision.
            beam: beam of the search, where models must be loaded separately for it.

        Raises:
            AggdecError: the engine does not have this precision.
        """
        kept = kept_in(precision, self.subject.device)
        if stock and precision == "bf16":
            kept = "bf16"
        return self._models(kept, None if kept == precision else precision, beam)

    def runner(
        self, mode: ModeSpec, batch_size: int, shuffled: bool = False
    ) -> ModeRunner:
        """The runner of a mode.

        Args:
            mode: how to decode.
            batch_size: sentences in a batch; sentences of similar length share one.
            shuffled: put sentences into batches in random order instead; other programs ignore it.

        Raises:
            AggdecError: the mode cannot decode the subject.
        """
        subject = self.subject
        # other programs
        if mode.nat is not None:
            loaded = self._nat(mode.nat, mode.precision)
            return NatRunner(loaded, mode, self._sentences(), batch_size)
        if mode.peer == CTRANSLATE2:
            return CTranslate2Runner(
                self._translator(mode.precision),
                (self.task.source_dictionary, self.task.target_dictionary),
                self.batches(self.task, batch_size),
                mode,
                subject.generation,
            )
        # this plugin's modes and fairseq's search
        task, models = self.load(mode.precision, stock=mode.row.is_fairseqs)
        if mode.beam > 1 and any(hasattr(model, "set_beam_size") for model in models):
            # fairseq's search sets the beam size of BART models, and they keep it
            task, models = self.load(mode.precision, stock=True, beam=mode.beam)
        batches = self.batches(task, batch_size, shuffled)
        texts = self.oracle_texts(mode, batch_size)
        if mode.row.drafter == SMALL_MODEL and subject.small_drafter is not None:
            mode = mode.having(drafter=subject.small_drafter)
        return FairseqRunner(task, models, batches, mode, texts, **subject.generation)

    def note_differences(self, results: Sequence[ModeResult]) -> None:
        """`References.note_differences` of modes of this subject."""
        symbols = self.task.target_dictionary.symbols
        self.references.note_differences(results, symbols)

    def compare_lossless(
        self, runners: Sequence[ModeRunner], repeats: int, until: float = math.inf
    ) -> list[ModeResult]:
        """`rounds.compare`, after which lossless modes must have the output of their references.

        Raises:
            AggdecError: an output differs, and rounding does not explain it.
        """
        results = compare(runners, repeats, until)
        self.note_differences(results)
        refuse_differing([result.mode.name for result in results if result.has_faults])
        return results

    def oracle_texts(self, mode: ModeSpec, batch_size: int) -> Texts | None:
        """The texts that the drafts of a mode are made from; None where the model drafts by itself, or nobody."""
        settings = self.subject.oracle
        row = mode.row
        if settings is None or not (row.copies or row.needs_drafter):
            return None
        dictionary = self.task.target_dictionary
        vocabulary = range(dictionary.nspecial, len(dictionary))  # ordinary symbols
        outputs = self._greedy(mode.precision, batch_size)
        if row.copies:
            return texts_to_copy(outputs, settings.edit_ratio, vocabulary)
        return texts_to_propose(
            outputs, settings.accepted, self.subject.block_size, vocabulary
        )

    def batches(
        self, task: Any, size: int, shuffled: bool = False
    ) -> list[dict[str, Any]]:
        """The sentences as fairseq's samples of at most `size`."""
        count = len(self.subject.sentences)
        order = Random(1).sample(range(count), count) if shuffled else None
        batches = loading.batches_of(
            task, self._sentences(), size, by_length=size > 1, order=order
        )
        lines = self.subject.draft_lines
        for batch in batches if lines else ():
            batch["drafts"] = [
                draft_tokens(lines[sentence], task.target_dictionary)
                for sentence in batch["id"].tolist()
            ]
        return batches

    def _sentences(self) -> list[torch.Tensor]:
        return [torch.tensor(sentence) for sentence in self.subject.sentences]

    def _load_models(self, kept: str, engines: str | None, beam: int) -> Loaded:
        """The models with weights in one precision.

        `engines`: the precision that only the engines have, if any; `beam`: see `load`.
        """
        subject = self.subject
        task, models = loading.load(
            subject.path,
            subject.data,
            subject.source_lang,
            subject.target_lang,
            task_name=subject.task,
            decoding=Decoding(
                AGGRESSIVE,
                drafter=subject.drafter_path,
                block_size=subject.block_size,
                block_ngrams=subject.block_ngrams,
                int8=engines == "int8",
                bit_exact=engines == "exact",
                bf16=engines == "bf16",
            ),
        )
        self.callback(task.release)
        if subject.drafter_path:
            task.load_drafter(subject.drafter_path, models)
        for model in models:
            model.to(device=subject.device, dtype=loading.DTYPES[kept])
        self._task = task
        return task, models

    def _load_nat(self, peer: NatPeer, precision: str) -> nat_runner.Loaded:
        subject = self.subject
        task, model = nat_runner.load_nat(
            peer, subject.data, subject.source_lang, subject.target_lang
        )
        return task, model.to(device=subject.device, dtype=loading.DTYPES[precision])

    @cached_property
    def _folder(self) -> Path:
        """For converted models."""
        kept = self.subject.keep
        return Path(kept or self.enter_context(TemporaryDirectory(prefix="aggdec-")))

    def _start_ctranslate2(self, precision: str) -> TranslatorProcess:
        subject = self.subject
        converted = ctranslate2_runner.convert(
            subject.path, subject.data, self.task.languages, self._folder
        )
        translator = TranslatorProcess(
            converted, precision, subject.device, torch.get_num_threads()
        )
        self.callback(translator.close)
        return translator

    def _greedy_outputs(self, precision: str, batch_size: int) -> Texts:
        greedy = replace(ModeSpec.parse(GREEDY), precision=precision)
        outputs = decode_once(self.runner(greedy, batch_size)).outputs
        return {sentence: output.tokens for sentence, output in outputs.items()}
