"""Text in, text out: `aggdec correct`, `aggdec translate`, `aggdec serve`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from tyro.conf import Positional, arg

from fairseq_aggdec.cli import options
from fairseq_aggdec.cli.options import Count, Flag, Many, Maybe, Verb
from fairseq_aggdec.demo.shipped import CAREFUL
from fairseq_aggdec.errors import AggdecError, option_name
from fairseq_aggdec.files import read_text
from fairseq_aggdec.text.edits import COLOURED_MARKS, PLAIN_MARKS, marked
from fairseq_aggdec.text.results import Result

if TYPE_CHECKING:
    from fairseq_aggdec.model import Model

_LONGEST_SERVED = 2048
"""subwords of a sentence"""


def _load(
    checkpoint: str | None, shipped: str, corrects: bool | None, **given: Any
) -> Model:
    """The model of a checkpoint, or of a folder in Hugging Face's format; None: the shipped one of that name."""
    from fairseq_aggdec.model import load
    from fairseq_aggdec.process import shorten_waits

    shorten_waits(True)  # loading is many small operations; each mode then sets them
    if checkpoint is None:
        return load.shipped(shipped, **given)
    kind = load.hub if os.path.isdir(checkpoint) else load
    return kind(checkpoint, corrects=corrects, **given)


@dataclass(kw_only=True)
class _OwnModel(options.Encoders, options.Languages):
    """Arguments of `load` beside the checkpoint."""

    # folder with the dictionaries of your model (default: the checkpoint's)
    data: Maybe[str] = None
    drafter_path: Maybe[str] = None  # checkpoint of a drafter for your model
    #: what a T5 reads before each text, as 'Fix grammar: '; '': nothing (default: what it was imported with)
    prompt: Maybe[str] = None


@dataclass(kw_only=True)
class _Decoding:
    """Arguments of `Model.decode`."""

    # greedy, iad, gad, gad++, speculative, beam, aggressive-beam, ...: docs/options.md
    mode: Maybe[str] = None
    tolerance: Maybe[float] = None  # of iad++ and gad++
    top_beta: Maybe[Count] = None  # of iad++ and gad++
    beam: Maybe[Count] = None  # of beam and aggressive-beam (default: 5)
    #: each text or file is one input, as for a --model that summarises (default: its sentences, or its lines)
    whole: Flag = False


@dataclass(kw_only=True)
class Translate(_Decoding, _OwnModel, Verb):
    """Translate text of any number of sentences and lines.

    The model that comes with this package is a demonstration for short everyday sentences: one that
    would visibly lose a part comes back as it was, and a note on stderr (a field of --json) says why.

    examples:
      aggdec translate "Where do you live?"
      aggdec translate --input letter.txt > brief.txt
      aggdec translate --path checkpoint.pt --data data-bin --tokenizer moses --bpe subword_nmt < text
      aggdec translate --model nllb-200-distilled-600M -s eng_Latn -t deu_Latn "Where do you live?"
      aggdec translate --model bart-large-cnn --whole --input article.txt
      aggdec translate --model opus-mt-en-mul ">>deu<< Where do you live?"
    """

    # default: the standard input
    texts: Positional[Many[str]] = field(default_factory=list)
    #: files of text, in their order; '-': standard input
    input: Annotated[Many[str], arg(aliases=["-i"])] = field(default_factory=list)
    json: Flag = False  # a JSON object a text: text, sentences, edits with offsets
    # checkpoint, or several joined by ':' (default: the shipped model)
    path: Maybe[str] = None
    # folder of a model in Hugging Face's format, imported once, or one of aggdec import-hf
    model: Maybe[str] = None
    #: default: a GPU where there is one; for TEXTS by the shipped model the CPU, which has done them sooner
    device: Maybe[Literal["cpu", "cuda"]] = None
    precision: Literal["fp32", "fp16", "bf16", "int8"] = "fp32"  # of the model
    threads: Maybe[Count] = None  # number of PyTorch's threads
    shipped: ClassVar = "mt"
    corrects: ClassVar[bool | None] = None

    def run(self) -> None:
        given = self.given(_OwnModel)
        decoding = self.given(_Decoding)
        # what does not go together
        if self.texts and self.input:
            raise AggdecError("give texts or --input, not both")
        if self.model and (self.path or self.data):
            raise AggdecError(
                "--model names a folder that has everything: leave out --path and --data"
            )
        if given and not (self.path or self.model):
            option = option_name(next(iter(given)))
            raise AggdecError(
                f"{option} is for a model of your own: give its checkpoint by --path"
            )
        # the model
        texts = self._texts()
        options.start(self.threads, self.path, self.drafter_path)
        is_short = self.texts and not (self.path or self.model)
        model = _load(
            self.model or self.path,
            self.shipped,
            self.corrects,
            device=self.device or ("cpu" if is_short else None),
            precision=self.precision,
            **given,
        )
        # text after text
        decode: Callable[..., Result] = (
            model.correct if self.corrects else model.translate
        )
        try:
            for text, end in texts:
                result = decode(
                    text, progress=sys.stderr.isatty() and len(text) > 5000, **decoding
                )
                for note in result.notes:
                    print(f"note: {note}", file=sys.stderr)
                sys.stdout.buffer.write(
                    (self.written(result) + ("\n" if self.json else end)).encode()
                )
                sys.stdout.buffer.flush()
        except BrokenPipeError:  # the reader of a pipe has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def written(self, result: Result) -> str:
        """A result as it is printed."""
        return (
            json.dumps(asdict(result), ensure_ascii=False) if self.json else result.text
        )

    def _texts(self) -> Iterator[tuple[str, str]]:
        """The texts, each with what is printed after its output: a text of the command line gets a line of its own."""
        if self.texts:
            yield from ((text, "\n") for text in self.texts)
            return
        for name in self.input or ["-"]:
            # answered line by line
            if name == "-" and sys.stdin.isatty() and not self.whole:
                yield from ((line.rstrip("\n"), "\n") for line in sys.stdin)
            else:
                yield read_text(name), ""


@dataclass(kw_only=True)
class Correct(Translate):
    """Correct text of any number of sentences and lines, whose spacing stays.

    What the shipped corrector is good for: docs/corrector.md.

    examples:
      aggdec correct "She have two brother."
      aggdec correct --diff --input letter.txt
      pbpaste | aggdec correct > corrected.txt
    """

    # print the text with its changes marked, in colour on a terminal
    diff: Flag = False
    shipped: ClassVar = "gec"
    corrects: ClassVar = True

    def written(self, result: Result) -> str:
        if self.json or not self.diff:
            return super().written(result)
        return marked(result, COLOURED_MARKS if options.in_colour() else PLAIN_MARKS)


@dataclass(kw_only=True)
class ImportHf(Verb):
    """Make a folder that fairseq reads out of a model in Hugging Face's format (BART, mBART, M2M-100,
    NLLB, OPUS-MT, Pegasus, T5, mT5), and print the commands for it."""

    folder: Positional[Path]  # with config.json, weights and tokenizer, as downloaded
    out: Path  # folder to make
    prompt: str = ""  # what a T5 reads before each text, as 'Fix grammar: '

    def run(self) -> None:
        options.start()
        from fairseq_aggdec.hub.importing import commands, import_checkpoint

        settings = import_checkpoint(self.folder, self.out, self.prompt)
        print(commands(self.out, settings))


@dataclass(kw_only=True)
class Serve(Verb):
    """Serve a corrector in the protocol of LanguageTool, and a translator, if asked for, in that of
    LibreTranslate.

    There is a page to try them. There is no authentication: it is not for the open net.
    """

    host: str = "127.0.0.1"  # address to listen at
    port: int = 8081  # 0 for a free one
    #: more names by which it is asked (default: those of this machine alone)
    allow_host: Many[str] = field(default_factory=list)
    threads: Maybe[Count] = None  # number of PyTorch's threads
    # checkpoint, or folder as of translate --model (default: the shipped one, English)
    corrector: Maybe[str] = None
    corrector_data: Maybe[str] = None  # folder of its dictionaries and subword codes
    corrector_tokenizer: Maybe[str] = None  # as in fairseq-interactive's --tokenizer
    corrector_bpe: Maybe[str] = None  # as in fairseq-interactive's --bpe
    # FROM-TO, of its dictionaries (default: as trained)
    corrector_languages: Maybe[str] = None
    language: Maybe[str] = None  # ISO code of its texts (default: its source language)
    mode: str = CAREFUL["mode"]  # mode that corrects
    # of iad++: higher keeps more of the text as it is (default for iad++: 2)
    tolerance: Maybe[float] = None
    # the shipped translator: a demonstration for short everyday sentences, en-de
    demo: Flag = False
    # checkpoint, or folder as of translate --model (default: no translator)
    translator: Maybe[str] = None
    translator_data: Maybe[str] = None  # folder of its dictionaries and subword codes
    translator_tokenizer: Maybe[str] = None  # as in fairseq-interactive's --tokenizer
    translator_bpe: Maybe[str] = None  # as in fairseq-interactive's --bpe
    #: FROM-TO, of its dictionaries, or languages of an imported model (default: as trained)
    translator_languages: Maybe[str] = None
    # mode that translates; iad: the output of --beam 1, for texts that grow (default: as translate)
    translator_mode: Maybe[str] = None

    def run(self) -> None:
        if self.demo and self.translator:
            raise AggdecError("give --translator or --demo, not both")
        if self.translator_mode and not (self.demo or self.translator):
            raise AggdecError(
                "--translator-mode: there is no translator; give --translator or --demo, too"
            )
        from fairseq_aggdec.serve.app import listen, serve

        options.start(self.threads)
        settings: dict[str, Any] = {"mode": self.mode}
        if self.mode == CAREFUL["mode"]:
            settings = dict(CAREFUL)
        if self.tolerance is not None:
            settings["tolerance"] = self.tolerance
        with listen(self.host, self.port) as listening:
            corrector = self._loaded("corrector", "gec")
            translator = None
            if self.demo or self.translator:
                translator = self._loaded("translator", "mt")
            serve(
                listening,
                self.host,
                self.allow_host,
                corrector,
                translator,
                self.language,
                settings,
                self.translator_mode,
            )

    def _loaded(self, name: str, shipped: str) -> Model:
        """The model of one side: of its checkpoint, or the shipped one."""
        checkpoint = getattr(self, name)
        given = {}
        if checkpoint is not None:
            source, _, target = (getattr(self, f"{name}_languages") or "").partition(
                "-"
            )
            given = {
                "data": getattr(self, f"{name}_data"),
                "tokenizer": getattr(self, f"{name}_tokenizer"),
                "bpe": getattr(self, f"{name}_bpe"),
                "source_lang": source or None,
                "target_lang": target or None,
            }
        model = _load(checkpoint, shipped, name == "corrector", **given)
        # T5 takes more, and memory grows by the square of a stranger's sentence
        model.longest = min(model.longest, _LONGEST_SERVED)
        return model
