"""Runs modes on one subject: for `aggdec bench`, `verify`, `tune` and `drafter`."""

import math
from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import torch
from fairseq.models import BaseFairseqModel

from fairseq_aggdec.generation.modes import AGGRESSIVE, IAD, MODES, SMALL_MODEL
from fairseq_aggdec.generation.modes import Mode as DecodingMode
from fairseq_aggdec.generation.options import Decoding
from fairseq_aggdec.lab.bench import ctranslate2_runner, nat_runner
from fairseq_aggdec.lab.bench.ctranslate2_runner import (
    CTranslate2Runner,
    TranslatorProcess,
)
from fairseq_aggdec.lab.bench.fairseq_runner import FairseqRunner
from fairseq_aggdec.lab.bench.modes import CTRANSLATE2, Mode, NatPeer
from fairseq_aggdec.lab.bench.nat_runner import NatRunner
from fairseq_aggdec.lab.bench.oracle import Texts, texts_to_copy, texts_to_propose
from fairseq_aggdec.lab.bench.rounds import ModeResult, ModeRunner, compare, decode_once
from fairseq_aggdec.lab.bench.subject import Subject, check_device
from fairseq_aggdec.lab.verify.differences import Difference, kept_in
from fairseq_aggdec.lab.verify.references import GREEDY, References, refuse_differing
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
        self.references = References(
            subject.device, self.precision, subject.block_ngrams
        )
        self._made: dict[tuple[Hashable, ...], Any] = {}

    def precision(self, mode: Mode) -> str:
        """The precision in which a mode computes."""
        return mode.precision or self.subject.precision

    @property
    def task(self) -> Any:
        """A task, for its dictionaries, which do not depend on the precision."""
        loaded = [made[0] for (kind, *_), made in self._made.items() if kind == "task"]
        return loaded[0] if loaded else self.load("fp32")[0]

    def load(self, precision: str, stock: bool = False, beam: int = 1) -> Loaded:
        """The task and the models of a precision, with an engine and a drafter of their own.

        Args:
            precision: one of `PRECISIONS`.
            stock: whether fairseq's own search decodes, which needs the whole model in that precision.
            beam: beam of the search, where models must be loaded separately for it.

        Raises:
            AggdecError: the engine does not have this precision.
        """
        kept = (
            "bf16"
            if stock and precision == "bf16"
            else kept_in(precision, self.subject.device)
        )
        engines = None if kept == precision else precision
        return self._once(
            lambda: self._load(kept, engines), "task", kept, engines, beam
        )

    def runner(self, mode: Mode, batch_size: int, shuffled: bool = False) -> ModeRunner:
        """The runner of a mode.

        Args:
            mode: how to decode.
            batch_size: sentences in a batch; sentences of similar length share one.
            shuffled: put sentences into batches in random order instead; other programs ignore it.

        Raises:
            AggdecError: the mode cannot decode the subject.
        """
        precision, subject = self.precision(mode), self.subject
        if mode.nat is not None:
            peer = mode.nat
            loaded = self._once(
                lambda: self._load_nat(peer, precision), "nat", peer.path, precision
            )
            return NatRunner(loaded, mode, self._sentences(), batch_size)
        if mode.peer == CTRANSLATE2:
            translator = self._once(
                lambda: self._start_ctranslate2(precision), CTRANSLATE2, precision
            )
            dictionaries = (self.task.source_dictionary, self.task.target_dictionary)
            return CTranslate2Runner(
                translator,
                dictionaries,
                self._batches(self.task, batch_size),
                mode,
                subject.generation,
            )
        task, models = self.load(precision, stock=mode.row.is_fairseqs)
        if mode.beam > 1 and any(hasattr(model, "set_beam_size") for model in models):
            # fairseq's search sets the beam size of BART models, and they keep it
            task, models = self.load(precision, stock=True, beam=mode.beam)
        batches = self._batches(task, batch_size, shuffled)
        texts = self._oracle_texts(mode.row, precision, batch_size)
        given = {"drafts": subject.drafts, "copies": subject.copies}
        options: dict[str, Any] = {
            name: value for name, value in given.items() if mode.row.reads(name)
        }
        if mode.row.drafter == SMALL_MODEL and subject.small_drafter is not None:
            options["drafter"] = subject.small_drafter
        mode = mode.having(**{**options, **mode.options})
        return FairseqRunner(task, models, batches, mode, texts, **subject.generation)

    def differences(
        self, runners: Sequence[ModeRunner], results: Sequence[ModeResult]
    ) -> dict[str, list[Difference]]:
        """`References.differences` of results of these runners."""
        return self.references.differences(
            runners, results, self.task.target_dictionary.symbols
        )

    def compare_lossless(
        self, runners: Sequence[ModeRunner], repeats: int, until: float = math.inf
    ) -> list[ModeResult]:
        """`rounds.compare`, after which lossless modes must have the output of their references.

        Raises:
            AggdecError: an output differs, and rounding does not explain it.
        """
        results = compare(runners, repeats, until)
        different = self.differences(runners, results)
        refuse_differing(
            {
                mode: sum(not one.near_tie for one in found)
                for mode, found in different.items()
            }
        )
        return results

    def copied_texts(self, mode: Mode, batch_size: int) -> Texts:
        """The texts that `iad` copies from, as token numbers of the source dictionary, EOS included."""
        texts = self._oracle_texts(MODES[IAD], self.precision(mode), batch_size)
        return dict(enumerate(self.subject.sentences)) if texts is None else texts

    def _once(self, make: Callable[[], Any], *key: Hashable) -> Any:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def _load(self, kept: str, engines: str | None) -> Loaded:
        """The models with weights in one precision; `engines`: the precision that only the engines have, if any."""
        subject = self.subject
        decoding = Decoding(
            AGGRESSIVE,
            drafter=subject.drafter_path,
            block_size=subject.block_size,
            block_ngrams=subject.block_ngrams,
            int8=engines == "int8",
            bit_exact=engines == "exact",
            bf16=engines == "bf16",
        )
        languages = (subject.source_lang, subject.target_lang)
        task, models = loading.load(
            subject.path,
            subject.data,
            *languages,
            task_name=subject.task,
            decoding=decoding,
        )
        self.callback(task.release)
        if subject.drafter_path:
            task.load_drafter(subject.drafter_path, models)
        for model in models:
            model.to(device=subject.device, dtype=loading.DTYPES[kept])
        return task, models

    def _load_nat(self, peer: NatPeer, precision: str) -> nat_runner.Loaded:
        subject = self.subject
        task, model = nat_runner.load_nat(
            peer, subject.data, subject.source_lang, subject.target_lang
        )
        return task, model.to(device=subject.device, dtype=loading.DTYPES[precision])

    def _start_ctranslate2(self, precision: str) -> TranslatorProcess:
        subject = self.subject
        folder = subject.keep or self._once(
            lambda: self.enter_context(TemporaryDirectory(prefix="aggdec-bench-")),
            "folder",
        )
        converted = ctranslate2_runner.convert(
            subject.path, subject.data, self.task.languages, Path(folder)
        )
        translator = TranslatorProcess(
            converted, precision, subject.device, torch.get_num_threads()
        )
        self.callback(translator.close)
        return translator

    def _sentences(self) -> list[torch.Tensor]:
        return [torch.tensor(sentence) for sentence in self.subject.sentences]

    def _batches(
        self, task: Any, size: int, shuffled: bool = False
    ) -> list[dict[str, Any]]:
        count = len(self.subject.sentences)
        order = Random(1).sample(range(count), count) if shuffled else None
        batches = loading.batches_of(
            task, self._sentences(), size, by_length=size > 1, order=order
        )
        lines, dictionary = self.subject.drafts_of_own, task.target_dictionary
        for batch in batches if lines else ():
            batch["drafts"] = [
                draft_tokens(lines[number], dictionary)
                for number in batch["id"].tolist()
            ]
        return batches

    def _oracle_texts(
        self, row: DecodingMode, precision: str, batch_size: int
    ) -> Texts | None:
        """The texts that the drafts of a mode are made from; None where the model drafts by itself, or nobody."""
        settings = self.subject.oracle
        if settings is None or not (row.copies or row.needs_drafter):
            return None
        dictionary = self.task.target_dictionary
        vocabulary = range(dictionary.nspecial, len(dictionary))  # ordinary symbols
        outputs = self._once(
            lambda: self._greedy_outputs(precision, batch_size),
            "outputs",
            precision,
            batch_size,
        )
        if row.copies:
            return texts_to_copy(outputs, settings.edit_ratio, vocabulary)
        return texts_to_propose(
            outputs, settings.accepted, self.subject.block_size, vocabulary
        )

    def _greedy_outputs(self, precision: str, batch_size: int) -> Texts:
        runner = self.runner(replace(GREEDY, precision=precision), batch_size)
        return {
            number: output.tokens
            for number, output in decode_once(runner).outputs.items()
        }
