"""`load`: a checkpoint that decodes text.

A text is cut into sentences, all sentences of all texts are decoded in batches of similar length by the generator that
the plugin's task builds, as in fairseq-generate, and each output is put where its sentence stood.
"""

import logging
import os
import re
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any, overload

import torch
from fairseq import utils
from fairseq.data import encoders
from fairseq.dataclass.configs import GenerationConfig
from fairseq.registry import REGISTRIES
from tqdm import tqdm

import fairseq_aggdec
from fairseq_aggdec.errors import AggdecError, option_name
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
from fairseq_aggdec.hub.settings import FILE, MODEL, TAGGED, Settings
from fairseq_aggdec.hub.tokenizers import HubBPE
from fairseq_aggdec.models.blockwise_transformer import proposal_heads
from fairseq_aggdec.process import log_warnings_only
from fairseq_aggdec.tasks import loading
from fairseq_aggdec.tasks.aggressive_translation import AggressiveTranslationConfig
from fairseq_aggdec.tasks.draft_file import draft_tokens
from fairseq_aggdec.tasks.interactive import missing_subwords, mostly_unknown
from fairseq_aggdec.text.edits import apply_edits, find_edits, result_of
from fairseq_aggdec.text.guard import degenerated, kept_edits
from fairseq_aggdec.text.line import WrittenLine
from fairseq_aggdec.text.results import Edit, Hypothesis, Result, Sentence
from fairseq_aggdec.text.sentences import cut_at_clauses, split_text
from fairseq_aggdec.text.shipped import CAREFUL, SHIPPED, longest_learnt
from fairseq_aggdec.text.spacing import match_spacing
from fairseq_aggdec.text.tokenizer import AsWrittenTokenizer
from fairseq_aggdec.text.translation_guard import PLAIN, guarded
from fairseq_aggdec.text.words import foreign

logger = logging.getLogger(__name__)

_ESCAPE = re.compile(r"&(?:quot|apos|amp|lt|gt|#\d+);")
_SUBWORD = re.compile("@@(?!\\S)|(?<!\\S)\u2581")
_SUBWORD_FILES = (
    ("bpecodes", "subword_nmt", "bpe_codes"),
    ("sentencepiece.bpe.model", "sentencepiece", "sentencepiece_model"),
)
"""(name in a model's folder, --bpe, its option), as fairseq's `from_pretrained` looks for them"""
_READ_LINES = ("bart", "pegasus")
"""families that read a line of several sentences as one input, unless they correct"""
_LINE, _WHOLE = re.compile(r"\S(.*\S)?"), re.compile(r"\S(.*\S)?", re.DOTALL)
_TAG = re.compile(r"^[^\S\n]*(>>[^\s<>]+<<)", re.MULTILINE)
"""the target language with which a line begins"""


@dataclass
class _Part:
    """A sentence of a text, or a part of one that is too long."""

    source: str
    start: int
    tokens: torch.Tensor | None
    """token numbers, EOS included; None: nothing to decode"""
    note: str | None = None
    draft: str = ""
    read: str = ""
    """what the model reads: the source, behind its language where the model wants that"""


# hypotheses by what is read and draft
_Found = dict[tuple[str, str], list[dict[str, Any]]]


class Model:
    """A checkpoint of fairseq's task `translation`, or an ensemble, with its tokeniser and subwords; `load` is this.

    Several threads may share one: one decodes at a time. `task` and `models` are fairseq's, for what this class does
    not do (`tasks.loading.batches_of`).
    """

    def __init__(
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
        device: str | torch.device | None = None,
        precision: str = "fp32",
        task: str = "translation",
        **options: Any,
    ) -> None:
        """
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
                but for imported models of BART and Pegasus that do not correct. Otherwise a line is one input.
            device: None for a GPU where there is one.
            precision: `fp32`, `fp16`, `bf16` or `int8`.
            task: fairseq's name of the model's task, such as `translation_multi_simple_epoch` for NLLB and M2M-100.
            options: further options of the task, as in fairseq-generate (`block_size=10`).

        Raises:
            AggdecError: a file or an option cannot be used, or they do not fit each other.
        """
        log_warnings_only()
        fairseq_aggdec.register()
        if precision not in loading.PRECISIONS:
            raise AggdecError(
                f"precision {precision}: choose one of {', '.join(loading.PRECISIONS)}"
            )
        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        try:
            device = torch.empty(0, device=device).device
        except (AssertionError, RuntimeError) as error:
            raise AggdecError(
                f"device {device}: cannot be used here ({str(error)[:60]}); take cpu"
            ) from error
        path = os.fspath(path)
        check_checkpoints(path)
        first = Path(path.split(":")[0])
        folder = Path(data) if data is not None else first.parent
        hub = Settings.found(first.parent)
        if hub is not None and not (folder / FILE).is_file():
            raise AggdecError(
                f"{folder}: has no {FILE}, which {path} needs: copy it from {first.parent}"
            )
        self.search: dict[str, Any] = {} if hub is None else dict(hub.generation)
        """an imported model's own search, in fairseq's names"""
        if self.search.pop("block_ngrams", False):
            options.setdefault("block_ngrams", True)
        if hub is not None and bpe in (None, "hub"):
            bpe = "hub"
            options.setdefault("hub_folder", str(first.parent))
        only_dictionaries = not any(folder.glob("*.idx"))
        if (
            hub is None
            and source_lang is None
            and target_lang is None
            and only_dictionaries
        ):
            of_training = loading.trained_options(str(first))
            source_lang, target_lang = (
                of_training.get("source_lang"),
                of_training.get("target_lang"),
            )
        self._of_tags = (
            hub
            if hub is not None
            and hub.takes_tags
            and not target_lang
            and only_dictionaries
            else None
        )
        """settings of an imported model whose texts begin with their target language"""
        if self._of_tags is not None:
            target_lang = TAGGED
        names_of_task = (
            options.keys()
            & AggressiveTranslationConfig.__dataclass_fields__.keys() - {"draft_file"}
        )
        of_task = {name: options.pop(name) for name in names_of_task}
        decoding = Decoding.from_args(
            Namespace(**{"decoding": of_task.pop("decoding", AGGRESSIVE), **of_task})
        )
        if drafter is not None:
            decoding = replace(decoding, drafter=os.fspath(drafter))
        self.task, self.models = loading.load(
            path,
            str(folder),
            source_lang,
            target_lang,
            device,
            precision,
            task,
            decoding,
            **of_task,
        )
        self.source_lang, self.target_lang = self.task.languages
        for name, kind, option in _SUBWORD_FILES:
            if (
                bpe in (None, kind)
                and option not in options
                and (folder / name).is_file()
            ):
                bpe, options[option] = kind, str(folder / name)
        languages = {"source_lang": self.source_lang, "target_lang": self.target_lang}
        self._tokenizer, self._bpe = _encoders(
            tokenizer, bpe or None, options, languages
        )
        if self._of_tags is not None:
            # each text names its own; what the task has is a marker
            self.target_lang = None
        same_language = (
            tokenizer == "as_written" or self.source_lang == self.target_lang
        )
        self.corrects = same_language if corrects is None else corrects
        running_text = tokenizer is not None or bpe not in (
            None,
            "",
            "subword_nmt",
            "fastbpe",
        )
        if hub is not None and hub.family in _READ_LINES:
            running_text = self.corrects
        self._splits = running_text if splits is None else splits
        takes, learnt = (
            min(model.encoder.max_positions() for model in self.models),
            longest_learnt(Path(path)),
        )
        # a language's token
        takes = int(takes) - (self.task.added if task == "translation" else 1)
        self.longest = min(takes, longest or learnt or takes)
        """the most subwords of a sentence, EOS included"""
        # a shipped model, whose outputs are checked; see also `translate`
        self._guarded = False
        self._lock = Lock()
        self._warned = False
        # settings and generator of the last call
        self._latest: tuple[str, Any] = "", None
        escapes = (
            []
            if self._tokenizer is None
            else _ESCAPE.findall(self._tokenizer.encode("& \" '"))
        )
        if escapes and not any(
            escape in self.task.source_dictionary.indices for escape in escapes
        ):
            logger.warning(
                f"the tokenizer writes {', '.join(escapes)}, which the model has not learnt: moses_no_escape "
                "(--moses-no-escape) leaves that out"
            )

    @classmethod
    def shipped(cls, name: str, **options: Any) -> "Model":
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
        if shipped.tokenizer == "moses":
            options |= {"moses_no_dash_splits": True, "moses_no_escape": True}
        model = cls(
            shipped.folder / "model.pt",
            source_lang=shipped.source_language,
            target_lang=shipped.target_language,
            tokenizer=shipped.tokenizer,
            bpe="subword_nmt",
            bpe_codes=str(shipped.folder / "bpecodes"),
            **options,
        )
        model._guarded = True
        return model

    @classmethod
    def hub(
        cls,
        folder: str | os.PathLike[str],
        source_lang: str | None = None,
        target_lang: str | None = None,
        **options: Any,
    ) -> "Model":
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
        made = imported(Path(folder))
        return cls(
            made / MODEL, source_lang=source_lang, target_lang=target_lang, **options
        )

    @property
    def modes(self) -> list[str]:
        """The modes in which this model can decode."""
        decoding = self.task.decoding
        heads = next(filter(None, map(proposal_heads, self.models)), 0)
        drafter = (
            None
            if decoding.drafter is None
            else self.task.load_drafter(decoding.drafter, self.models)
        )
        kind = None if drafter is None else kind_of(drafter)
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
        texts: str | Sequence[str],
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
    ) -> Result | list[Result]:
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
        of_mode = {
            name: options.pop(name)
            for name in list(options)
            if readers(name) and name != "draft_file"
        }
        options = self.search | options
        own_beam = options.pop("beam", None)  # of an imported model
        if mode is None:
            searches = (
                own_beam is not None and drafts is None and (beam or own_beam) > 1
            )
            mode = AGGRESSIVE_BEAM if searches else AGGRESSIVE
        unknown = [
            name
            for name in options
            if name not in GenerationConfig.__dataclass_fields__
        ]
        if unknown:
            raise AggdecError(
                f"{unknown[0]}: neither an option of Model.decode nor of fairseq's generation"
            )
        for name, value in {
            "beam": beam,
            "nbest": nbest,
            "max_tokens": max_tokens,
            "batch_size": batch_size,
        }.items():
            if value is not None and value < 1:
                raise AggdecError(f"{name} {value}: must be at least 1")
        if mode not in MODES:
            raise AggdecError(f"mode {mode}: choose one of {', '.join(self.modes)}")
        own: list[str | None] = [None] * len(several)
        if drafts is not None:
            mode = MODES[mode].resolve(COPIES).name
            if not MODES[mode].reads("draft_file"):
                raise AggdecError(
                    f"drafts (--draft-file) are read by {', '.join(readers('draft_file'))} only, not by {mode}"
                )
            own = [drafts] if isinstance(drafts, str) else list(drafts)
            if len(own) != len(several):
                raise AggdecError(
                    f"drafts: {len(own)} for {len(several)} texts: give one, or None, for each text"
                )
        if whole and self._guarded:
            raise AggdecError(
                "whole (--whole): the shipped models have learnt single sentences; leave it out"
            )
        parts = [
            self._parts(text, draft, whole)
            for text, draft in zip(several, own, strict=True)
        ]
        with self._lock:
            decoding = self.task.decoding.with_mode(mode, **of_mode)
            beam = (beam or own_beam or 5) if decoding.row.has_beam else 1
            generator = self._generator_for(decoding, **options, beam=beam, nbest=nbest)
            every = [part for some in parts for part in some]
            decoded = self._decoded(
                generator, every, nbest, max_tokens, batch_size, progress
            )
        results = [
            self._result(text, some, decoded)
            for text, some in zip(several, parts, strict=True)
        ]
        return results[0] if isinstance(texts, str) else results

    @overload
    def translate(
        self, texts: str, mode: str | None = ..., **options: Any
    ) -> Result: ...

    @overload
    def translate(
        self, texts: Sequence[str], mode: str | None = ..., **options: Any
    ) -> list[Result]: ...

    def translate(
        self, texts: str | Sequence[str], mode: str | None = None, **options: Any
    ) -> Result | list[Result]:
        """As `decode`, but with the shipped translator a sentence that it cannot be trusted with stays as it was.

        `Sentence.note` then says why. With a model of one's own this is `decode`.
        """
        if not self._guarded:
            return self.decode(texts, mode, **options)
        several = [texts] if isinstance(texts, str) else list(texts)
        decoded = self.decode(
            [text.translate(PLAIN) for text in several], mode, **options
        )
        results = list(map(guarded, several, decoded))
        return results[0] if isinstance(texts, str) else results

    @overload
    def correct(self, texts: str, **options: Any) -> Result: ...

    @overload
    def correct(self, texts: Sequence[str], **options: Any) -> list[Result]: ...

    def correct(
        self, texts: str | Sequence[str], **options: Any
    ) -> Result | list[Result]:
        """Correct texts: `decode`, for the shipped corrector with the settings that damage least (`CAREFUL`).

        Raises:
            AggdecError: this model translates, or an option cannot be used.
        """
        if not self.corrects:
            raise AggdecError(
                "this model is no corrector: use decode, or load(..., corrects=True)"
            )
        careful = CAREFUL if self._guarded and "mode" not in options else {}
        return self.decode(texts, **{**careful, **options})

    def sentences(self, text: str) -> list[str]:
        """The sentences of a text that `decode` decodes one by one."""
        return [part.source for part in self._parts(text) if part.tokens is not None]

    def encode(self, sentence: str) -> torch.Tensor:
        """The token numbers of one sentence, EOS included."""
        return self.task.source_dictionary.encode_line(
            self._subwords(sentence), add_if_not_exist=False
        ).long()

    def _subwords(self, sentence: str, is_target: bool = False) -> str:
        """A sentence in subwords, joined by spaces; `is_target`: in those of an output."""
        for encoder in filter(None, (self._tokenizer, self._bpe)):
            is_hub = isinstance(encoder, HubBPE)  # alone has others for outputs
            sentence = (
                encoder.encode(sentence, is_target)
                if is_hub
                else encoder.encode(sentence)
            )
        return sentence

    def text(self, output: torch.Tensor, sentence: str) -> str:
        """The token numbers of an output as running text, spaced as the sentence of which it is the output."""
        # a language's token
        stripped = getattr(self._latest[1], "symbols_to_strip_from_output", None)
        tokens = self.task.target_dictionary.string(
            output, extra_symbols_to_ignore=stripped
        )
        if self._bpe is not None:
            tokens = self._bpe.decode(tokens)
        # which restores the spacing
        if isinstance(self._tokenizer, AsWrittenTokenizer):
            text = WrittenLine(sentence).restored(tokens)
        else:
            text = tokens if self._tokenizer is None else self._tokenizer.decode(tokens)
            # a model with byte subwords can produce line feeds
            text = " ".join(text.split("\n"))
            if self.corrects:
                text = match_spacing(sentence, text)
        if self._guarded and self.corrects:
            text = apply_edits(
                sentence, kept_edits(sentence, find_edits(sentence, text))
            )
        return text

    def tokens(self, output: torch.Tensor) -> list[str]:
        """The subwords of an output, EOS included."""
        return [self.task.target_dictionary[index] for index in output.tolist()]

    def _generator_for(self, decoding: Decoding, **generation: Any) -> Any:
        """Return the latest generator if the settings are the same, since its schedule has learnt; else a new one."""
        settings = repr((decoding, generation))
        if self._latest[0] != settings:
            made = self.task.build_generator(
                self.models, Namespace(**generation), decoding=decoding
            )
            self._latest = settings, made
        return self._latest[1]

    def _spans(
        self, text: str, language: str | None, whole: bool
    ) -> list[tuple[int, int]]:
        """Start and end of each input of a text: its sentences, its lines, or all of it."""
        if whole or not self._splits:
            return [
                found.span() for found in (_WHOLE if whole else _LINE).finditer(text)
            ]
        tags = (
            []
            if self._of_tags is None
            else [(tag.start(1), tag.end()) for tag in _TAG.finditer(text)]
        )
        spans = []
        # what is between two tags is split alone; a tag belongs to the first sentence behind it, and is one without any
        for (start, behind), (end, _) in pairwise([(0, 0), *tags, (len(text), 0)]):
            found = split_text(
                text[behind:end], language or "en", markers=self.corrects
            )
            own = [(behind + first, behind + last) for first, last in found]
            if behind > start:
                own[:1] = [
                    (
                        start,
                        own[0][1] if own else behind + len(text[behind:end].rstrip()),
                    )
                ]
            spans += own
        return spans

    def tag(self, text: str, before: str = "") -> str:
        """The target language that a text begins with, such as `>>deu<<`, or else `before`, that of the text before it.

        "" where it was given when the model was loaded, or the model has but one.

        Raises:
            AggdecError: the text names no language, or one that the model does not have.
        """
        if self._of_tags is None:
            return ""
        found = _TAG.match(text)
        tag, named = found[1] if found else before, f"'{text[:60]}'"
        if not tag:
            example = next(iter(self._of_tags.languages.values()))
            raise AggdecError(
                f"{named}: {self._of_tags.needs('-t')}, or begin the text with one: {example} ..."
            )
        self._of_tags.check_language(named, tag.strip("<>"))
        return tag

    def _parts(
        self, text: str, draft: str | None = None, whole: bool = False
    ) -> list[_Part]:
        """The inputs of a text, with their drafts; a sentence that is too long is cut at clauses."""
        # where the inputs are, and what is drafted for each
        spans = self._spans(text, self.source_lang, whole)
        drafts = []
        if draft is not None:
            named = None if self._of_tags is None else _TAG.search(text)
            language = self.target_lang if named is None else named[1].strip("<>")
            drafts = [
                draft[start:end] for start, end in self._spans(draft, language, whole)
            ]
        if len(drafts) != len(spans):
            drafts = [" ".join(drafts)] * len(spans)  # in which each finds its own
        # cutting asks for the number of tokens of many pieces
        encode = cache(self.encode)
        tag = ""  # of the sentence that the loop is at
        parts = []

        def fits(piece: str) -> bool:
            return len(encode(_tagged(piece, tag))) <= self.longest

        for (start, end), own in zip(spans, drafts, strict=True):
            tag = self.tag(text[start:end], tag)
            cuts = [(0, end - start)]
            if self._splits and not whole:
                cuts = cut_at_clauses(text[start:end], fits)
            for first, last in cuts:
                source, note = text[start + first : start + last], None
                read = _tagged(source, tag)
                tokens = encode(read)
                # what cannot be decoded, or not well
                if len(tokens) > self.longest:
                    note = f"too long: {len(tokens)} tokens, and the model takes {self.longest}; copied"
                elif self._guarded and self.corrects:
                    note = foreign(source)
                elif self._bpe is None and mostly_unknown(
                    tokens, self.task.source_dictionary
                ):
                    self._warn_once(missing_subwords(source))
                is_read = note is None and len(tokens) > 1
                parts.append(
                    _Part(
                        source,
                        start + first,
                        tokens if is_read else None,
                        note,
                        own,
                        read,
                    )
                )
        return parts

    def _warn_once(self, message: str) -> None:
        if not self._warned:
            self._warned = True
            logger.warning(message)

    @torch.inference_mode()
    def _decoded(
        self,
        generator: Any,
        parts: list[_Part],
        nbest: int,
        max_tokens: int,
        batch_size: int | None,
        progress: bool,
    ) -> _Found:
        """The hypotheses of each different sentence; those of similar length are decoded together."""
        sources = {
            (part.read, part.draft): part.tokens
            for part in parts
            if part.tokens is not None
        }
        waiting = sorted(sources, key=lambda source: len(sources[source]))
        found: _Found = {}
        device = next(self.models[0].parameters()).device
        with tqdm(total=len(waiting), unit=" sentences", disable=not progress) as bar:
            while waiting:
                size = min(
                    len(waiting),
                    batch_size or len(waiting),
                    max(1, max_tokens // len(sources[waiting[-1]])),
                )
                # the longest first: memory is short at once or never
                batch, waiting = waiting[-size:], waiting[:-size]
                (sample,) = loading.batches_of(
                    self.task, [sources[source] for source in batch], size
                )
                keys, target = (
                    [batch[number] for number in sample["id"].tolist()],
                    self.task.target_dictionary,
                )
                sample = utils.apply_to_sample(
                    lambda tensor: tensor.to(device, non_blocking=True), sample
                )
                sample["drafts"] = [
                    draft_tokens(self._subwords(draft, True), target) if draft else []
                    for _, draft in keys
                ]
                hypotheses = self.task.inference_step(generator, self.models, sample)
                for key, own in zip(keys, hypotheses, strict=True):
                    if not own:
                        raise AggdecError(
                            f"'{key[0][:60]}': the model gives no finite score; try without fp16"
                        )
                    found[key] = own[:nbest]
                _bring([hypothesis for key in keys for hypothesis in found[key]])
                bar.update(size)
        return found

    def _result(self, text: str, parts: list[_Part], decoded: _Found) -> Result:
        sentences = [self._sentence(part, decoded) for part in parts]
        edits: list[Edit] = []
        for one in sentences if self.corrects else ():
            edits += [
                replace(edit, offset=edit.offset + one.start)
                for edit in find_edits(one.source, one.text)
            ]
        return result_of(text, sentences, edits if self.corrects else None)

    def _sentence(self, part: _Part, decoded: _Found) -> Sentence:
        source, end = part.source, part.start + len(part.source)
        if part.tokens is None:
            return Sentence(source, part.start, end, source, note=part.note)
        nbest, hypotheses = [], decoded[part.read, part.draft]
        for hypothesis in hypotheses:
            tokens = self.tokens(hypothesis["tokens"])[:-1]
            nbest.append(
                Hypothesis(
                    self.text(hypothesis["tokens"], source),
                    tokens,
                    float(hypothesis["score"]),
                )
            )
        best, first = nbest[0], hypotheses[0]
        if (
            self._bpe is None
            and any(map(_SUBWORD.search, best.tokens))
            and not _SUBWORD.search(source)
        ):
            self._warn_once(
                f"the output '{best.text[:60]}' is in subwords: name them (--bpe), and they are joined"
            )
        text, note = best.text, None
        if self.corrects:
            words = [
                self.task.source_dictionary[index]
                for index in part.tokens[:-1].tolist()
            ]
            reason = degenerated(words, best.tokens)
            if reason is not None:
                text, note = source, f"{reason}; left as it was"
        stats = first.get("stats")
        return Sentence(
            source, part.start, end, text, best.tokens, best.score, nbest,
            iterations=len(best.tokens) + 1 if stats is None else stats.iterations,
            drafted=0 if stats is None else sum(stats.drafted),
            accepted=0 if stats is None else sum(stats.accepted),
            note=note,
        )  # fmt: skip


def _tagged(source: str, tag: str) -> str:
    """A text behind its target language, which it may have already; "": it needs none."""
    return f"{tag} {source.removeprefix(tag).lstrip()}" if tag else source


def _bring(hypotheses: Sequence[dict[str, Any]]) -> None:
    """Bring outputs and scores to the host: to read one from a GPU takes as long as all, and is done for each token."""
    for name in ("tokens", "score"):
        parts = [hypothesis[name].view(-1) for hypothesis in hypotheses]
        read = torch.cat(parts).cpu().split([len(part) for part in parts])
        for hypothesis, part in zip(hypotheses, read, strict=True):
            hypothesis[name] = part.view(hypothesis[name].shape)


def _encoders(
    tokenizer: str | None,
    bpe: str | None,
    options: dict[str, Any],
    languages: dict[str, str],
) -> tuple[Any, Any]:
    """fairseq's tokeniser and encoder of subwords by their names and options; None for one without a name.

    Raises:
        AggdecError: fairseq has no such encoder, nothing reads an option, or an option or a file cannot be used.
    """
    known: set[str] = set()
    for kind, name in (("tokenizer", tokenizer), ("bpe", bpe)):
        registry = REGISTRIES[kind]
        if name is not None and name not in registry["registry"]:
            raise AggdecError(
                f"{kind} {name}: choose one of {', '.join(sorted(registry['registry']))}"
            )
        if name in registry["dataclass_registry"]:
            known |= set(registry["dataclass_registry"][name].__dataclass_fields__)
    for name in options:
        if name not in known:
            raise AggdecError(
                f"{name}: neither an option of the task nor of tokenizer {tokenizer} and bpe {bpe}"
            )
        if (
            isinstance(options[name], str)
            and Path(options[name]).is_dir()
            and not name.endswith("_folder")
        ):
            raise AggdecError(
                f"{option_name(name)} {options[name]}: a folder; name a file in it"
            )
    of_fairseq = Namespace(tokenizer=tokenizer, bpe=bpe, **languages, **options)
    try:
        return encoders.build_tokenizer(of_fairseq), encoders.build_bpe(of_fairseq)
    except (ImportError, OSError, KeyError, AttributeError) as error:
        raise AggdecError(f"--tokenizer {tokenizer}, --bpe {bpe}: {error}") from error


load = Model
