"""`load`: a checkpoint that decodes text.

A text is cut into sentences (`text.pipeline`), all sentences of all texts are decoded in batches of similar length by
the generator that the plugin's task builds, as in fairseq-generate, and each output is put where its sentence stood.
"""

import os
from argparse import Namespace
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, overload

import torch
from fairseq import utils
from fairseq.dataclass.configs import GenerationConfig
from fairseq.models import BaseFairseqModel
from tqdm import tqdm

import fairseq_aggdec
from fairseq_aggdec.demo.shipped import CAREFUL, SHIPPED, ShippedModel, longest_learnt
from fairseq_aggdec.errors import AggdecError, check_least
from fairseq_aggdec.files import check_checkpoints
from fairseq_aggdec.generation.drafter_checkpoint import kind_of
from fairseq_aggdec.generation.modes import (
    AGGRESSIVE,
    AGGRESSIVE_BEAM,
    COPIES,
    MODES,
    readers,
)
from fairseq_aggdec.generation.options import Decoding
from fairseq_aggdec.hub.importing import imported
from fairseq_aggdec.hub.settings import (
    FILE,
    MODEL,
    T5,
    TAGGED,
    Settings,
    check_prompted,
)
from fairseq_aggdec.hub.tokenizers import read_tokenizer
from fairseq_aggdec.models.blockwise_transformer import proposal_heads
from fairseq_aggdec.process import log_warnings_only
from fairseq_aggdec.tasks import loading
from fairseq_aggdec.tasks.aggressive_translation import AggressiveTranslationConfig
from fairseq_aggdec.tasks.draft_file import draft_tokens
from fairseq_aggdec.text.encoders import Encoders
from fairseq_aggdec.text.pipeline import Outputs, Part, TextPipeline
from fairseq_aggdec.text.results import Result
from fairseq_aggdec.text.session import Session

Texts = str | Sequence[str]
Results = Result | list[Result]
"""of one text alone, or of several"""

_SUBWORD_FILES = (
    ("bpecodes", "subword_nmt", "bpe_codes"),
    ("sentencepiece.bpe.model", "sentencepiece", "sentencepiece_model"),
)
"""(name in a model's folder, --bpe, its option), as fairseq's `from_pretrained` looks for them"""
_OF_TOKENS = (None, "", "subword_nmt", "fastbpe")
"""values of --bpe that do not read running text"""
_OF_BATCHES = ("nbest", "max_tokens", "batch_size", "progress")
"""arguments of `Model.decode` that are no options of the search"""
_READ_LINES = ("bart", "pegasus", *T5)
"""families that read a line of several sentences as one input, unless they correct"""


@dataclass(kw_only=True, eq=False)
class Model(TextPipeline):
    """A checkpoint of fairseq's task `translation`, or an ensemble, with its tokeniser and subwords; `load` makes it.

    Several threads may share one: one decodes at a time. `task` and `models` are fairseq's, for what this class does
    not do (`tasks.loading.batches_of`).
    """

    models: list[BaseFairseqModel]
    search: dict[str, Any]
    """the search that an imported model brings, in fairseq's names"""
    shipped: ShippedModel | None
    """None: the model does not come with this package"""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._lock = Lock()
        # settings and generator of the last call
        self._latest: tuple[str, Any] = "", None

    @property
    def modes(self) -> list[str]:
        """The modes in which this model can decode."""
        decoding = self.task.decoding
        heads = next(filter(None, map(proposal_heads, self.models)), 0)
        kind = None
        if decoding.drafter is not None:
            kind = kind_of(self.task.load_drafter(decoding.drafter, self.models))
        return [
            name for name in MODES if not decoding.with_mode(name).faults(heads, kind)
        ]

    @overload
    def decode(self, texts: str, mode: str | None = ..., **options: Any) -> Result: ...

    @overload
    def decode(
        self, texts: Sequence[str], mode: str | None = ..., **options: Any
    ) -> list[Result]: ...

    def decode(
        self,
        texts: Texts,
        mode: str | None = None,
        *,
        drafts: str | Sequence[str | None] | None = None,
        beam: int | None = None,
        nbest: int = 1,
        max_tokens: int = 4000,
        batch_size: int | None = None,
        progress: bool = False,
        whole: bool = False,
        **options: Any,
    ) -> Results:
        """Decode texts; one given alone has one result, several have a list in their order.

        Args:
            texts: each of any number of sentences and lines.
            mode: one of `modes`; `aggressive` is a lossless one by what the model allows. None: this, or where an
                imported model has a beam of its own, and neither drafts nor another beam are given, `aggressive-beam`.
            drafts: a guess of each output, such as an older translation, or None, for `iad` and `iad++` to copy in
                place of the source; a text for one text, a list for several. `aggressive` then is `iad`.
            beam: for `beam` and `aggressive-beam`; None: an imported model's own, or 5.
            nbest: the length of the n-best lists, in these two modes.
            max_tokens: the most subwords of a batch of sources, padding included.
            batch_size: the most sentences of a batch; None: no limit.
            progress: show a bar on stderr.
            whole: a text is one input, for a model that summarises; not for the shipped models. False: its sentences,
                or its lines, see `splits` of `load`.
            options: further ones of the mode (`tolerance=2.0`), see `Decoding`, and of fairseq's generation
                (`lenpen=0.6`, `max_len_b=100`).

        Raises:
            AggdecError: the mode or an option cannot be used.
        """
        several = [texts] if isinstance(texts, str) else list(texts)
        guesses = _one_each(drafts, len(several))
        if whole and self.shipped:
            raise AggdecError(
                "whole (--whole): the shipped models have learnt single sentences; leave it out"
            )
        parts = [
            self.parts(text, guess, whole)
            for text, guess in zip(several, guesses, strict=True)
        ]
        outputs = self.outputs(
            [part for some in parts for part in some],
            mode,
            has_drafts=drafts is not None,
            beam=beam,
            nbest=nbest,
            max_tokens=max_tokens,
            batch_size=batch_size,
            progress=progress,
            **options,
        )
        results = [
            self.result(text, some, outputs)
            for text, some in zip(several, parts, strict=True)
        ]
        # the shipped corrector is not trusted with every edit
        if self.shipped and self.corrects:
            results = list(map(self.shipped.after_decoding, several, results))
        return results[0] if isinstance(texts, str) else results

    def outputs(
        self,
        parts: Sequence[Part],
        mode: str | None = None,
        *,
        has_drafts: bool = False,
        beam: int | None = None,
        nbest: int = 1,
        max_tokens: int = 4000,
        batch_size: int | None = None,
        progress: bool = False,
        **options: Any,
    ) -> Outputs:
        """The hypotheses of the parts of texts, decoded in batches of similar length.

        `has_drafts`: whether they may have drafts; the others, and errors, are those of `decode`.
        """
        counts = {
            "beam": beam,
            "nbest": nbest,
            "max_tokens": max_tokens,
            "batch_size": batch_size,
        }
        check_least(Namespace(**counts), 1, *counts)
        decoding, search = self._search(mode, beam, has_drafts, options)
        with self._lock:
            generator = self._generator_for(decoding, **search, nbest=nbest)
            return _decoded(
                self, generator, parts, nbest, max_tokens, batch_size, progress
            )

    def session(self, mode: str | None = None, **options: Any) -> Session:
        """For a text that grows: `session.update(text)` has the result of `translate(text, mode, **options)`, sooner.

        Sentences that stay are not decoded again, and where `reads_drafts` says so, the last output of a sentence that
        changes is its draft. The mode, the options and the errors are those of `decode`, but `drafts` and `whole`.
        """
        reads_drafts = self.reads_drafts(mode, **options)
        decode = partial(self.outputs, mode=mode, has_drafts=reads_drafts, **options)
        return Session(self, decode, reads_drafts, self.shipped)

    def reads_drafts(
        self, mode: str | None = None, beam: int | None = None, **options: Any
    ) -> bool:
        """Whether an older output as draft (`drafts`) saves passes in these settings of `decode`, and changes nothing.

        It does where `iad` translates: a model that drafts guesses better than an older output, and a corrector's
        source is the better draft. In lossy modes and with a beam an output may depend on its draft.
        """
        of_search = {
            name: value for name, value in options.items() if name not in _OF_BATCHES
        }
        decoding, _ = self._search(mode, beam, False, of_search)
        heads = next(filter(None, map(proposal_heads, self.models)), 0)
        copies = decoding.resolved(heads).copies
        return copies and decoding.is_lossless and not self.corrects

    def _search(
        self, mode: str | None, beam: int | None, has_drafts: bool, options: Any
    ) -> tuple[Decoding, dict[str, Any]]:
        """How to decode, and fairseq's options of the generation."""
        of_mode = _taken(options, [name for name in options if readers(name)])
        search = self.search | options
        beam_of_model = search.pop("beam", None)
        if mode is None:
            has_beam = beam_of_model is not None and (beam or beam_of_model) > 1
            mode = AGGRESSIVE_BEAM if has_beam and not has_drafts else AGGRESSIVE
        unknown = search.keys() - GenerationConfig.__dataclass_fields__.keys()
        if unknown:
            raise AggdecError(
                f"{min(unknown)}: neither an option of Model.decode nor of fairseq's generation"
            )
        if mode not in MODES:
            raise AggdecError(f"mode {mode}: choose one of {', '.join(self.modes)}")
        if has_drafts:
            mode = MODES[mode].resolve(COPIES).name
            if not MODES[mode].reads("draft_file"):
                raise AggdecError(
                    f"drafts (--draft-file) are read by {', '.join(readers('draft_file'))} only, not by {mode}"
                )
        decoding = self.task.decoding.with_mode(mode, **of_mode)
        search["beam"] = (beam or beam_of_model or 5) if decoding.row.has_beam else 1
        return decoding, search

    def _generator_for(self, decoding: Decoding, **generation: Any) -> Any:
        """Return the latest generator if the settings are the same, since its schedule has learnt; else a new one."""
        settings = repr((decoding, generation))
        if self._latest[0] != settings:
            generator = self.task.build_generator(
                self.models, Namespace(**generation), decoding=decoding
            )
            self._latest = settings, generator
            # by the task's languages: all its generators have the same
            self.hidden = generator.symbols_to_strip_from_output
        return self._latest[1]

    @overload
    def translate(
        self, texts: str, mode: str | None = ..., **options: Any
    ) -> Result: ...

    @overload
    def translate(
        self, texts: Sequence[str], mode: str | None = ..., **options: Any
    ) -> list[Result]: ...

    def translate(
        self, texts: Texts, mode: str | None = None, **options: Any
    ) -> Results:
        """As `decode`, but with the shipped translator a sentence that it cannot be trusted with stays as it was.

        `Sentence.note` then says why. With a model of yours this is `decode`.
        """
        shipped = self.shipped
        if shipped is None or self.corrects:
            return self.decode(texts, mode, **options)
        several = [texts] if isinstance(texts, str) else list(texts)
        plain = [text.translate(shipped.characters) for text in several]
        decoded = self.decode(plain, mode, **options)
        results = list(map(shipped.after_decoding, several, decoded))
        return results[0] if isinstance(texts, str) else results

    @overload
    def correct(self, texts: str, **options: Any) -> Result: ...

    @overload
    def correct(self, texts: Sequence[str], **options: Any) -> list[Result]: ...

    def correct(self, texts: Texts, **options: Any) -> Results:
        """Correct texts: `decode`, for the shipped corrector with the settings that damage least (`CAREFUL`).

        Raises:
            AggdecError: this model translates, or an option cannot be used.
        """
        if not self.corrects:
            raise AggdecError(
                "this model is no corrector: use decode, or load(..., corrects=True)"
            )
        careful = CAREFUL if self.shipped and "mode" not in options else {}
        return self.decode(texts, **{**careful, **options})

    def sentences(self, text: str) -> list[str]:
        """The sentences of a text that `decode` decodes one by one."""
        parts = self.parts(text)
        return [part.source for part in parts if part.is_decoded]


def _one_each(
    drafts: str | Sequence[str | None] | None, count: int
) -> Sequence[str | None]:
    """A draft, or None, for each of `count` texts."""
    if drafts is None:
        return [None] * count
    several = [drafts] if isinstance(drafts, str) else list(drafts)
    if len(several) != count:
        raise AggdecError(
            f"drafts: {len(several)} for {count} texts: give one, or None, for each text"
        )
    return several


def _taken(options: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Take the options of these names out of `options`; `draft_file` is given as `drafts`."""
    return {
        name: options.pop(name)
        for name in names
        if name in options and name != "draft_file"
    }


@torch.inference_mode()
def _decoded(
    model: Model,
    generator: Any,
    parts: Sequence[Part],
    nbest: int,
    max_tokens: int,
    batch_size: int | None,
    progress: bool,
) -> Outputs:
    """The hypotheses of each different part; those of similar length are decoded together."""
    task = model.task
    device = next(model.models[0].parameters()).device
    sources = {part.key: part.tokens for part in parts if part.is_decoded}
    waiting = sorted(sources, key=lambda source: len(sources[source]))
    outputs: Outputs = {}
    with tqdm(total=len(waiting), unit=" sentences", disable=not progress) as bar:
        while waiting:
            # the longest first: memory is short at once or never
            size = max(1, max_tokens // len(sources[waiting[-1]]))
            size = min(size, batch_size or size, len(waiting))
            batch = waiting[-size:]
            del waiting[-size:]
            tokens = [sources[source] for source in batch]
            (sample,) = loading.batches_of(task, tokens, size)
            # fairseq sorts the sentences of a batch
            keys = [batch[index] for index in sample["id"].tolist()]
            sample = utils.apply_to_sample(
                lambda tensor: tensor.to(device, non_blocking=True), sample
            )
            sample["drafts"] = [
                draft_tokens(draft, task.target_dictionary) for _, draft in keys
            ]
            found = task.inference_step(generator, model.models, sample)
            for key, hypotheses in zip(keys, found, strict=True):
                if not hypotheses:
                    raise AggdecError(
                        f"'{key[0][:60]}': the model gives no finite score; try without fp16"
                    )
                outputs[key] = hypotheses[:nbest]
            _bring([one for key in keys for one in outputs[key]])
            bar.update(size)
    return outputs


def _bring(hypotheses: Sequence[dict[str, Any]]) -> None:
    """Bring outputs and scores to the host: to read one from a GPU takes as long as all, and is done for each token."""
    for name in ("tokens", "score"):
        parts = [hypothesis[name].view(-1) for hypothesis in hypotheses]
        read = torch.cat(parts).cpu().split([len(part) for part in parts])
        for hypothesis, part in zip(hypotheses, read, strict=True):
            hypothesis[name] = part.view(hypothesis[name].shape)


class Loader:
    """Loads models: `load(checkpoint)` fairseq's, `load.hub` Hugging Face's, `load.shipped` the small ones."""

    def __call__(
        self,
        path: str | os.PathLike[str],
        data: str | os.PathLike[str] | None = None,
        *,
        source_lang: str | None = None,
        target_lang: str | None = None,
        tokenizer: str | None = None,
        bpe: str | None = None,
        drafter: str | os.PathLike[str] | None = None,
        corrects: bool | None = None,
        longest: int | None = None,
        splits: bool | None = None,
        prompt: str | None = None,
        device: str | torch.device | None = None,
        precision: str = "fp32",
        task: str = "translation",
        shipped: ShippedModel | None = None,
        **options: Any,
    ) -> Model:
        """Load a model.

        Args:
            path: a checkpoint, or several joined by `:`, which decode as an ensemble.
            data: the folder with the dictionaries (dict.*.txt); None: that of the checkpoint.
            source_lang, target_lang: suffixes of the dictionaries; None: as the folder has them.
            tokenizer, bpe: as in fairseq's `from_pretrained` (`moses`, `as_written`; `subword_nmt`, `sentencepiece`,
                ...), with their further options (`bpe_codes=...`, `sentencepiece_model=...`, `moses_no_escape=True`). A
                file `bpecodes` or `sentencepiece.bpe.model` in the data folder is used by itself, unless bpe is "".
            drafter: the checkpoint of a block drafter, for `gad`, `gad++` and `nar`, or of an ordinary, smaller model,
                for `speculative`.
            corrects: whether the output is a correction of its input, in the same language: it then has edits, keeps
                the spacing of what was not changed, and a degenerate output is replaced by its source. None: whether
                `source_lang` and `target_lang` are the same.
            longest: the most subwords of a sentence, EOS included, for a model that has learnt short ones; longer
                sentences are cut at clauses. None: what the model takes, or has learnt if it is a shipped one.
            splits: whether a line can hold several sentences. None: where a tokeniser or subwords read running text,
                but for an imported BART, Pegasus or T5 that does not correct. Otherwise a line is one input.
            prompt: what a T5 reads before each text, such as "Fix grammar: "; "": nothing. None: what it was imported
                with.
            device: None for a GPU where there is one.
            precision: `fp32`, `fp16`, `bf16` or `int8`.
            task: fairseq's name of the model's task, such as `translation_multi_simple_epoch` for NLLB and M2M-100.
            shipped: given by `load.shipped`; its `after_decoding` checks what the model makes of a text.
            options: further options of the task, as in fairseq-generate (`block_size=10`).

        Raises:
            AggdecError: a file or an option cannot be used, or they do not fit each other.
        """
        log_warnings_only()
        fairseq_aggdec.register()
        if precision not in loading.PRECISIONS:
            known = ", ".join(loading.PRECISIONS)
            raise AggdecError(f"precision {precision}: choose one of {known}")
        device = _usable(device)
        path = os.fspath(path)
        check_checkpoints(path)
        checkpoint = Path(path.split(":")[0])
        folder = checkpoint.parent if data is None else Path(data)
        hub = _imported_settings(checkpoint, folder)
        # an imported model brings its search and its tokeniser
        search: dict[str, Any] = {} if hub is None else dict(hub.generation)
        if search.pop("block_ngrams", False):
            options.setdefault("block_ngrams", True)
        if hub is not None and bpe in (None, "hub"):
            bpe = "hub"
            options.setdefault("hub_folder", str(checkpoint.parent))
        # languages that the data folder does not name
        tags = None
        if not any(folder.glob("*.idx")):
            if hub is None and source_lang is None and target_lang is None:
                trained = loading.trained_options(str(checkpoint))
                source_lang = trained.get("source_lang")
                target_lang = trained.get("target_lang")
            elif hub is not None and hub.takes_tags and not target_lang:
                tags = hub
                target_lang = TAGGED
        # the model
        of_task = _taken(options, AggressiveTranslationConfig.__dataclass_fields__)
        mode = of_task.pop("decoding", AGGRESSIVE)
        decoding = Decoding.from_args(Namespace(decoding=mode, **of_task))
        if drafter is not None:
            decoding = replace(decoding, drafter=os.fspath(drafter))
        loaded, models = loading.load(
            path, str(folder), source_lang, target_lang, device, precision, task, decoding, **of_task
        )  # fmt: skip
        # its text
        source_lang, target_lang = loaded.languages
        for name, kind, option in _SUBWORD_FILES:
            is_there = option not in options and (folder / name).is_file()
            if is_there and bpe in (None, kind):
                bpe = kind
                options[option] = str(folder / name)
        languages = {"source_lang": source_lang, "target_lang": target_lang}
        encoders = Encoders(tokenizer, bpe or None, options, languages)
        if prompt is not None:
            check_prompted("fairseq's models" if hub is None else hub.family)
            symbols = read_tokenizer(checkpoint.parent).prompt(prompt)
            before = [*map(loaded.source_dictionary.index, symbols)]
            loaded.form = loaded.form._replace(before=before)
        if corrects is None:
            corrects = tokenizer == "as_written" or source_lang == target_lang
        if splits is None:
            splits = tokenizer is not None or bpe not in _OF_TOKENS
            if hub is not None and hub.family in _READ_LINES:
                splits = corrects
        takes = min(model.encoder.max_positions() for model in models)
        # the tokens of languages, or one
        takes = int(takes) - (loaded.added if task == "translation" else 1)
        return Model(
            task=loaded,
            models=models,
            search=search,
            shipped=shipped,
            encoders=encoders,
            tags=tags,
            corrects=corrects,
            splits=splits,
            longest=min(takes, longest or longest_learnt(Path(path)) or takes),
        )

    def shipped(self, name: str, **options: Any) -> Model:
        """A small model that comes with this package: `gec` corrects English, `mt` translates English into German.

        Args:
            name: `gec` or `mt`.
            options: `device`, `precision` and options of the task.

        Raises:
            AggdecError: there is no such model, or a file of it is missing.
        """
        if name not in SHIPPED:
            raise AggdecError(
                f"no model '{name}' is shipped; there are {', '.join(SHIPPED)}"
            )
        shipped = SHIPPED[name]
        if shipped.drafter is not None:
            options["drafter"] = shipped.folder / shipped.drafter
        return self(
            shipped.folder / "model.pt", shipped=shipped, **shipped.options, **options
        )

    def hub(
        self,
        folder: str | os.PathLike[str],
        source_lang: str | None = None,
        target_lang: str | None = None,
        **options: Any,
    ) -> Model:
        """A model in Hugging Face's format, or what `aggdec import-hf` has made of it; searches as it says itself.

        Args:
            folder: one with config.json, weights and tokenizer, imported once into the user's cache; or an imported
                one.
            source_lang, target_lang: names of languages, such as `eng_Latn`; None: the model's own, or that of the text
                where a Marian model has several (`>>deu<< How are you?`).
            options: others of `load`.

        Raises:
            AggdecError: the folder cannot be imported, the model has no such language, or what `load` raises.
        """
        checkpoint = imported(Path(folder)) / MODEL
        return self(
            checkpoint, source_lang=source_lang, target_lang=target_lang, **options
        )


def _usable(device: str | torch.device | None) -> torch.device:
    """A device by its name, None: the default one. Raises `AggdecError` where it cannot be used."""
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=device).device
    except (AssertionError, RuntimeError) as error:
        raise AggdecError(
            f"device {device}: cannot be used here ({str(error)[:60]}); take cpu"
        ) from error


def _imported_settings(checkpoint: Path, folder: Path) -> Settings | None:
    """Those of an imported checkpoint, None for another. Raises `AggdecError` where the data folder lacks them."""
    settings = Settings.found(checkpoint.parent)
    if settings is not None and not (folder / FILE).is_file():
        raise AggdecError(
            f"{folder}: has no {FILE}, which {checkpoint} needs: copy it from {checkpoint.parent}"
        )
    return settings


load = Loader()
