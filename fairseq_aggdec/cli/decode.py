"""`aggdec decode DATA-BIN --path CKPT --input FILE... --output FOLDER`: decodes large text files in many processes."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairseq_aggdec.bulk.settings import STDIN
from fairseq_aggdec.cli.options import add_batch_options, add_task_option, add_work_options, check_least
from fairseq_aggdec.errors import on_command_line, option_name
from fairseq_aggdec.files import check_checkpoints
from fairseq_aggdec.generation.modes import AGGRESSIVE, MODES, modes_help
from fairseq_aggdec.generation.options import Decoding, add_decoding_options, add_search_options, narrow_options

TOKENIZERS = ("as_written", "moses", "nltk", "space")
SUBWORDS = "bert byte_bpe bytes characters fastbpe gpt2 hf_byte_bpe sentencepiece subword_nmt".split()
"""the names that fairseq has for --tokenizer and --bpe with this plugin; its registries take seconds to import"""
_SHARD_LINES = 2000
_EPILOG = """\
The outputs of FILE are in OUT/FILE.*.txt, in the order of cat OUT/FILE.*.txt. Each line has one output; that of an
empty line is empty, and so is that of a line which cannot be translated, being too long or not UTF-8; where a
model corrects, what cannot be decoded stays as it was (these lines are listed in OUT/skipped.tsv). To
go on after a command was stopped or killed, start it again. --bpe and --tokenizer have the further options that they
have in fairseq-interactive (--bpe-codes, --sentencepiece-model, --moses-no-escape, ...)."""


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    parsed = _parsed(argv)
    import fairseq_aggdec

    fairseq_aggdec.register()
    from fairseq_aggdec.bulk.text import decode_text

    logging.getLogger("fairseq_aggdec.bulk").setLevel(logging.INFO)
    decode_text(*parsed)


def _parsed(argv: Sequence[str] | None) -> tuple[argparse.Namespace, dict[str, Any], dict[str, Any]]:
    """All options, those for the model and its text encoders, and the options that differ from their defaults."""
    parser = argparse.ArgumentParser(
        prog="aggdec decode",
        usage="aggdec decode DATA-BIN --path CKPT --input FILE... --output OUT [options]",
        description="Decode text files of one sentence a line, in any mode of the plugin.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("data", metavar="DATA-BIN", help="folder with the dictionaries, made by fairseq-preprocess")
    parser.add_argument("--path", required=True, help="checkpoint, or several joined by ':'")
    parser.add_argument(
        "--input", nargs="+", default=["-"], metavar="FILE", help="text; '-', the default: the standard input"
    )
    parser.add_argument("--output", type=Path, required=True, metavar="OUT", help="folder to write")
    parser.add_argument("-s", "--source-lang")
    parser.add_argument("-t", "--target-lang")
    add_task_option(parser)
    text = parser.add_argument_group("text")
    text.add_argument("--tokenizer", choices=TOKENIZERS, help="tokeniser of the input, undone in the output")
    text.add_argument("--bpe", choices=SUBWORDS, help="subwords of the input, joined again in the output")
    text.add_argument(
        "--one-sentence-a-line",
        action="store_true",
        help="decode each line as a whole (default: with --tokenizer, or a --bpe that reads text, by sentences)",
    )
    text.add_argument(
        "--longest",
        type=int,
        help="subwords that a sentence may have, longer ones are cut at clauses (default: all it takes)",
    )

    work = parser.add_argument_group("work")
    add_work_options(work, 1, "which can change outputs at near-ties (default: 1)")
    work.add_argument(
        "--shard-lines", type=int, default=_SHARD_LINES, help="number of lines in a shard (default: %(default)s)"
    )
    add_batch_options(work)

    search = parser.add_argument_group("search (as in fairseq-generate)")
    search.add_argument("--beam", type=int, help="beam of --decoding beam (default: 5)")
    add_search_options(search)

    modes = parser.add_argument_group("modes (as in fairseq-generate with this plugin)")
    modes.add_argument("--decoding", choices=MODES, default=AGGRESSIVE, help=f"{modes_help()} (default: {AGGRESSIVE})")
    add_decoding_options(modes)
    narrow_options(parser)
    passed = {action.dest for action in modes._group_actions} - {"draft_file"}

    chosen, _ = parser.parse_known_args(argv)
    for name in ("tokenizer", "bpe"):
        if choice := getattr(chosen, name):
            check_checkpoints(
                chosen.path, Decoding.of(chosen).drafter
            )  # before fairseq is imported, which takes seconds
            passed |= _add_options_of_encoder(parser.add_argument_group(f"{name} {choice}"), name, choice)
    args = parser.parse_args(argv)
    _check(parser, args)
    check_checkpoints(args.path, Decoding.of(args).drafter)
    values = vars(args)
    given = {name: value for name, value in values.items() if value != parser.get_default(name)}
    return args, {name: values[name] for name in passed}, given


def _add_options_of_encoder(group: Any, kind: str, name: str) -> set[str]:
    """Add the further options of a tokeniser or of subwords, which fairseq knows; returns their fields' names."""
    import fairseq_aggdec

    fairseq_aggdec.register()
    from fairseq.dataclass.utils import gen_parser_from_dataclass
    from fairseq.registry import REGISTRIES

    dataclass = REGISTRIES[kind]["dataclass_registry"].get(name)
    if dataclass is not None:
        gen_parser_from_dataclass(group, dataclass())
    return {action.dest for action in group._group_actions}


def _check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    check_least(
        parser, args, 1, "workers", "threads", "longest", "shard_lines", "max_tokens", "batch_size", "beam", "max_len_b"
    )
    for name, value in vars(args).items():
        if value == "???":  # fairseq's mark of an option that must be given
            parser.error(f"{option_name(name)} is needed for --bpe {args.bpe}")
    if MODES[args.decoding].has_beam:
        args.beam = args.beam or 5
    elif args.beam is not None:
        parser.error(
            f"--beam goes with --decoding beam and aggressive-beam: --decoding {args.decoding} has a beam of one"
        )
    names = [STDIN if name == "-" else Path(name).name for name in args.input]
    for name in names:
        if names.count(name) > 1:
            parser.error(
                f"--input: two files are called {name}, and their outputs would be, too; give one a folder apart"
            )
        longer = next((other for other in names if other.startswith(f"{name}.")), None)
        if longer is not None:
            parser.error(f"--input: {name}.*.txt would be outputs of {longer}, too; give one of them another name")


if __name__ == "__main__":
    main()
