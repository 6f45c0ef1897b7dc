"""`aggdec verify`: checks on the user's machine that this plugin's output for the user's model is fairseq's."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.cli import options
from fairseq_aggdec.errors import on_command_line, option_name
from fairseq_aggdec.files import check_result_file
from fairseq_aggdec.generation.modes import DRAFTS
from fairseq_aggdec.generation.options import add_search_options, given_search_options
from fairseq_aggdec.lab.bench.modes import PRECISIONS


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help. The exit code is 1 where a lossless mode differs.

    Raises:
        AggdecError: a file or an option cannot be used.
    """
    parser = _parser()
    args = parser.parse_args(argv)
    _check(parser, args)

    if args.json:
        check_result_file(args.json, "{")
    options.start(args.threads, args.path, args.drafter_path)
    from fairseq_aggdec.lab.verify.verify_command import run

    report = run(args, options.command("verify", argv))
    if args.json:
        report.save(args.json)
    print(report.text())
    if report.verification.failed:
        raise SystemExit(1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="aggdec verify",
        description="Compare every mode with fairseq's own search on the first sentences of a split. The exit code is "
        "1 where a lossless mode differs by more than rounding explains.",
    )
    options.add_subject_options(parser)
    parser.add_argument(
        "--thorough",
        action="store_true",
        help="100 sentences in place of 20, and every precision of the machine, alone and in small and large batches",
    )
    parser.add_argument(
        "--limit", type=int, help="only the first N sentences (default: 20; --thorough: 100; of a random model 8)"
    )
    parser.add_argument(
        "--modes",
        help="comma separated, from greedy, iad, iad++, gad, gad++, speculative, nar, blockwise, aggressive-beam:N, "
        "whose lists are compared with fairseq's beam of N; +whole behind one adds --drafts whole "
        "(default: greedy, iad and aggressive-beam:5, with a drafter gad and gad++ or speculative, with "
        "proposal heads blockwise; on a CPU iad, gad and speculative +whole, too)",
    )
    parser.add_argument(
        "--precisions",
        type=_precisions,
        help=f"comma separated, from {', '.join(PRECISIONS)} (under --bit-exact, on a GPU in fp16); one that this "
        "machine lacks is then an error (default: fp32, as fairseq-generate without --fp16; --thorough: all it has)",
    )
    parser.add_argument(
        "--bit-exact",
        action=argparse.BooleanOptionalAction,
        help="where no --precisions are given, also decode under --bit-exact, if the device supports it: alone, in "
        "batches and shuffled, compared to the last bit (default: only with --thorough)",
    )
    parser.add_argument(
        "--batch-sizes",
        type=options.numbers(int, 1),
        help="comma separated (default: 1,8; --thorough: 1,8,32)",
    )
    parser.add_argument(
        "--drafts",
        choices=DRAFTS,
        help="whole: on a CPU verify whole drafts also in batches and with large models; auto: only what saves time "
        "(default: whole for random models; others are verified both ways, by the modes with +whole)",
    )
    options.add_task_option(parser)
    parser.add_argument(
        "--draft-file", type=Path, metavar="FILE", help="a draft for each sentence of the split, for iad and iad++"
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="write all results to this file")
    add_search_options(parser.add_argument_group("search (as in fairseq-generate)"))
    options.add_random_model_options(parser)
    parser.set_defaults(precision=None)  # read where the model is loaded; --precisions replaces it
    return parser


def _precisions(text: str) -> list[str]:
    names = text.split(",")
    if not set(names) <= set(PRECISIONS) or len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"{text}: give different ones of {', '.join(PRECISIONS)}, separated by commas")
    return names


def _check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Exit where options make no sense."""
    others = [name for name in ("draft_file", *given_search_options(args)) if getattr(args, name)]
    options.check_random_model_options(parser, args, *map(option_name, others))
    if args.bit_exact is False and "exact" in (args.precisions or ()):
        parser.error("--precisions exact decodes under --bit-exact: leave out --no-bit-exact, or exact")
    is_exact = args.thorough if args.bit_exact is None else args.bit_exact
    if args.max_len_a and ("exact" in args.precisions if args.precisions else is_exact):
        parser.error(
            "--max-len-a lets the length of an output depend on its batch, which --bit-exact compares: add "
            "--no-bit-exact, or leave it out"
        )


if __name__ == "__main__":
    main()
