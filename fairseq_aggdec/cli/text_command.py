"""`aggdec correct` and `aggdec translate`: text or files in, text out."""

from __future__ import annotations

import json
import os
import sys
from argparse import RawTextHelpFormatter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from fairseq_aggdec.cli import options
from fairseq_aggdec.cli.options import argument, option
from fairseq_aggdec.errors import AggdecError, on_command_line, option_name
from fairseq_aggdec.files import read_text

if TYPE_CHECKING:
    from fairseq_aggdec.text.results import Result

COLOURS = {"old": ("\033[31;9m", "\033[0m"), "new": ("\033[32m", "\033[0m")}
MARKS = {"old": ("[-", "-]"), "new": ("{+", "+}")}
"""as in git's --word-diff"""
_CORRECT = """\
Correct text of any number of sentences and lines, whose spacing stays.
What the shipped corrector is good for: docs/corrector.md.

examples:
  aggdec correct "She have two brother."
  aggdec correct --diff --input letter.txt
  pbpaste | aggdec correct > corrected.txt"""
_TRANSLATE = """\
Translate text of any number of sentences and lines.
The model that comes with this package is a demonstration for short everyday sentences: one that
would visibly lose a part comes back as it was, and a note on stderr (a field of --json) says why.

examples:
  aggdec translate "Where do you live?"
  aggdec translate --input letter.txt > brief.txt
  aggdec translate --path checkpoint.pt --data data-bin --tokenizer moses --bpe subword_nmt --bpe-codes codes < text"""
_INTERACTIVE = "as in fairseq-interactive, for a model of your own"


@dataclass(kw_only=True)
class OwnModel:
    """Arguments of `load` beside the checkpoint."""

    data: str | None = option("folder with the dictionaries of your model (default: the checkpoint's)", None)
    source_lang: str | None = option("of your model", None, short="-s")
    target_lang: str | None = option("of your model", None, short="-t")
    drafter_path: str | None = option("checkpoint of a drafter for your model", None)
    tokenizer: str | None = option(_INTERACTIVE, None)
    bpe: str | None = option(_INTERACTIVE, None)
    bpe_codes: str | None = option(_INTERACTIVE, None)
    sentencepiece_model: str | None = option(_INTERACTIVE, None)
    moses_no_escape: bool | None = option(_INTERACTIVE, None)
    moses_no_dash_splits: bool | None = option(_INTERACTIVE, None)


@dataclass(kw_only=True)
class Decoding:
    """Arguments of `Model.decode`."""

    mode: str | None = option("greedy, iad, gad, gad++, speculative, beam, aggressive-beam, ...: docs/options.md", None)
    tolerance: float | None = option("of iad++ and gad++", None)
    top_beta: int | None = option("of iad++ and gad++", None, least=1)
    beam: int | None = option("of beam and aggressive-beam (default: 5)", None, least=1)


@dataclass(kw_only=True)
class TextOptions(Decoding, OwnModel):
    """The options of both verbs."""

    texts: list[str] = argument("default: the standard input", [], metavar="TEXT")
    input: list[str] | None = option("files of text, in their order; '-': standard input", None, short="-i")
    json: bool = option("a JSON object a text: text, sentences, edits with offsets", False)
    path: str | None = option("checkpoint, or several joined by ':' (default: the shipped model)", None)
    device: Literal["cpu", "cuda"] | None = option("default: a GPU where there is one", None)
    precision: Literal["fp32", "fp16", "bf16", "int8"] = option("of the model", "fp32")
    threads: int | None = option("number of PyTorch's threads", None, least=1)


@dataclass(kw_only=True)
class CorrectOptions(TextOptions):
    """The options of `aggdec correct`."""

    diff: bool = option("print the text with its changes marked, in colour on a terminal", False)


def correct(argv: Sequence[str] | None = None) -> None:
    """Correct English text, or any text by a correction model of one's own; see --help."""
    _run(CorrectOptions, "correct", argv, "gec", _CORRECT)


def translate(argv: Sequence[str] | None = None) -> None:
    """Translate English into German, or any text by a model of one's own; see --help."""
    _run(TextOptions, "translate", argv, "mt", _TRANSLATE)


@on_command_line()
def _run(kind: type[TextOptions], verb: str, argv: Sequence[str] | None, shipped: str, help: str) -> None:
    """Decode what the command line names, and print it.

    Args:
        kind: the options of the verb.
        verb: `correct` or `translate`.
        argv: the words behind the verb.
        shipped: the name of the model to take where no checkpoint is given.
        help: a description; a blank line and examples follow.

    Raises:
        AggdecError: a file or an option cannot be used.
    """
    description, _, examples = help.partition("\n\n")
    given = options.read(kind, verb, argv, description, epilog=examples, formatter_class=RawTextHelpFormatter)
    if given.texts and given.input:
        raise AggdecError("give texts or --input, not both")
    own, decoding = (
        {field.name: value for field in fields(part) if (value := getattr(given, field.name)) is not None}
        for part in (OwnModel, Decoding)
    )
    if own and not given.path:
        raise AggdecError(f"{option_name(next(iter(own)))} is for a model of your own: give its checkpoint by --path")
    texts = _texts(given)
    options.start(given.threads, given.path, given.drafter_path)
    from fairseq_aggdec.model import load

    common: dict[str, Any] = {"device": given.device, "precision": given.precision}
    if given.path:
        model = load(given.path, corrects=True if verb == "correct" else None, **own, **common)
    else:
        model = load.shipped(shipped, **common)
    decode = model.correct if verb == "correct" else model.translate
    try:
        for text, end in texts:
            result = decode(text, progress=sys.stderr.isatty() and len(text) > 5000, **decoding)
            for note in result.notes:
                print(f"note: {note}", file=sys.stderr)
            sys.stdout.buffer.write((_written(result, given) + ("\n" if given.json else end)).encode())
            sys.stdout.buffer.flush()
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _texts(given: TextOptions) -> Iterator[tuple[str, str]]:
    """The texts, each with what is printed after its output: a text of the command line gets a line of its own."""
    if given.texts:
        yield from ((text, "\n") for text in given.texts)
        return
    for name in given.input or ["-"]:
        if name == "-" and sys.stdin.isatty():  # answered line by line
            yield from ((line.rstrip("\n"), "\n") for line in sys.stdin)
        else:
            yield read_text(name), ""


def _written(result: Result, given: TextOptions) -> str:
    if given.json:
        return json.dumps(asdict(result), ensure_ascii=False)
    if not getattr(given, "diff", False):
        return result.text
    return marked(result, COLOURS if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else MARKS)


def marked(result: Result, marks: dict[str, tuple[str, str]]) -> str:
    """A correction as one text, in which what was taken out and what was put in are marked."""
    parts, end = [], 0
    for edit in result.edits:
        parts.append(result.source[end : edit.offset])
        end = edit.offset + edit.length
        for kind, text in (("old", result.source[edit.offset : end]), ("new", edit.replacement)):
            if text:
                parts += [marks[kind][0], text, marks[kind][1]]
    return "".join([*parts, result.source[end:]])
