"""What `aggdec correct` and `aggdec translate` share: text or files in, text out."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairseq_aggdec.cli import options
from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.files import decode_text

if TYPE_CHECKING:
    from fairseq_aggdec.text.model import Model
    from fairseq_aggdec.text.results import Result

COLOURS = {"old": ("\033[31;9m", "\033[0m"), "new": ("\033[32m", "\033[0m")}
MARKS = {"old": ("[-", "-]"), "new": ("{+", "+}")}
"""as in git's --word-diff"""
_OF_OWN_MODEL = (
    "data",
    "source_lang",
    "target_lang",
    "drafter",
    "tokenizer",
    "bpe",
    "bpe_codes",
    "sentencepiece_model",
    "moses_no_escape",
    "moses_no_dash_splits",
)


def text_parser(verb: str, description: str, example: str) -> argparse.ArgumentParser:
    """The options of both verbs."""
    parser = argparse.ArgumentParser(
        prog=f"aggdec {verb}", description=description, epilog=example, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="default: the standard input")
    parser.add_argument(
        "-i", "--input", nargs="+", metavar="FILE", help="files of text, in their order; '-': standard input"
    )
    parser.add_argument("--json", action="store_true", help="a JSON object a text: text, sentences, edits with offsets")
    model = parser.add_argument_group("a model of your own (default: the one that comes with this package)")
    model.add_argument("--path", help="checkpoint, or several joined by ':'")
    model.add_argument("--data", help="folder with its dictionaries (default: the checkpoint's)")
    model.add_argument("-s", "--source-lang")
    model.add_argument("-t", "--target-lang")
    model.add_argument("--drafter-path", dest="drafter", help="checkpoint of a drafter")
    for name in ("tokenizer", "bpe", "bpe-codes", "sentencepiece-model"):
        model.add_argument(f"--{name}", help="as in fairseq-interactive")
    for name in ("moses-no-escape", "moses-no-dash-splits"):
        model.add_argument(f"--{name}", action="store_true", default=None, help="as in fairseq-interactive")
    decoding = parser.add_argument_group("decoding")
    decoding.add_argument(
        "--mode", help="greedy, iad, iad++, gad, gad++, beam, aggressive-beam, ...: see docs/options.md"
    )
    decoding.add_argument("--tolerance", type=float, help="of iad++ and gad++")
    decoding.add_argument("--top-beta", type=int, help="of iad++ and gad++")
    decoding.add_argument("--beam", type=int, help="of beam and aggressive-beam (default: 5)")
    decoding.add_argument("--device", choices=("cpu", "cuda"), help="default: a GPU where there is one")
    decoding.add_argument("--precision", choices=("fp32", "fp16", "bf16", "int8"), default="fp32")
    decoding.add_argument("--threads", type=int, help="number of PyTorch's threads")
    return parser


@on_command_line()
def run(parser: argparse.ArgumentParser, argv: Sequence[str] | None, shipped: str, **defaults: Any) -> None:
    """Decodes what the command line names, and prints it.

    Args:
        parser: from `text_parser`.
        argv: the words behind the verb.
        shipped: the name of the model to take where no checkpoint is given.
        defaults: of `Model.decode` with that model.

    Raises:
        AggdecError: a file or an option cannot be used.
    """
    args = parser.parse_args(argv)
    options.check_least(parser, args, 1, "threads", "beam", "top_beta")
    if args.texts and args.input:
        parser.error("give texts or --input, not both")
    own = {name: value for name in _OF_OWN_MODEL if (value := getattr(args, name)) is not None}
    if own and not args.path:
        parser.error(f"--{next(iter(own)).replace('_', '-')} is for a model of your own: give its checkpoint by --path")
    if args.mode is None and not args.path:
        args.mode = defaults.pop("mode", None)
    else:
        defaults = {}
    texts = _texts(args)
    options.start(args.threads)
    from fairseq_aggdec.text.model import load

    common = {"device": args.device, "precision": args.precision}
    if args.path:
        model = load(args.path, corrects=True if parser.prog.endswith("correct") else None, **own, **common)
    else:
        model = load.shipped(shipped, **common)
    given = {name: getattr(args, name) for name in ("mode", "tolerance", "top_beta", "beam")}
    decoding = {**defaults, **{name: value for name, value in given.items() if value is not None}}
    try:
        for text, end in texts:
            _print(_decoded(model, text, decoding), end, args)
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _texts(args: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """The texts, each with what is printed after its output: a text of the command line gets a line of its own."""
    if args.texts:
        for text in args.texts:
            yield text, "\n"
        return
    for name in args.input or ["-"]:
        if name == "-" and sys.stdin.isatty():  # answered line by line
            yield from ((line.rstrip("\n"), "\n") for line in sys.stdin)
            continue
        try:
            data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        except OSError as error:
            raise AggdecError(f"{name}: cannot be read ({error.strerror})") from error
        yield decode_text(data, "standard input" if name == "-" else name), ""


def _decoded(model: Model, text: str, decoding: dict[str, Any]) -> Result:
    result = model.decode(text, progress=sys.stderr.isatty() and len(text) > 5000, **decoding)
    for note in result.notes:
        print(f"note: {note}", file=sys.stderr)
    return result


def _print(result: Result, end: str, args: argparse.Namespace) -> None:
    if args.json:
        print(json.dumps(asdict(result), ensure_ascii=False), flush=True)
    elif getattr(args, "diff", False):
        coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        print(marked(result, COLOURS if coloured else MARKS), end=end, flush=True)
    else:
        sys.stdout.buffer.write((result.text + end).encode())
        sys.stdout.buffer.flush()


def marked(result: Result, marks: dict[str, tuple[str, str]]) -> str:
    """A correction as one text, in which what was taken out and what was put in are marked."""
    parts, end = [], 0
    for edit in result.edits:
        parts.append(result.source[end : edit.offset])
        end = edit.offset + edit.length
        for kind, text in (("old", result.source[edit.offset : end]), ("new", edit.replacement)):
            if text:
                before, after = marks[kind]
                parts.append(f"{before}{text}{after}")
    return "".join([*parts, result.source[end:]])
