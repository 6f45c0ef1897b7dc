"""`aggdec bench`: decoding modes timed side by side, on a binarised test set or on a random model of a paper's size."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.cli import options
from fairseq_aggdec.errors import on_command_line, option_name
from fairseq_aggdec.files import check_result_file
from fairseq_aggdec.generation.modes import DRAFTS
from fairseq_aggdec.generation.options import add_search_options
from fairseq_aggdec.lab.bench.modes import KNOWN, parse_modes
from fairseq_aggdec.lab.bench.search_settings import check_peers, given_settings


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the benchmark; see --help.

    Raises:
        AggdecError: an option or a file cannot be used; or, after all is printed and saved, the output of a lossless
            mode was not that of greedy decoding.
    """
    parser = _parser()
    args = parser.parse_args(argv)
    _check(parser, args)
    modes = parse_modes(args.modes, args.peers, args.nat_peer)
    check_peers(given_settings(args), modes)

    if args.json:
        check_result_file(args.json, "{")
    options.start(args.threads, args.path, args.drafter_path)
    from fairseq_aggdec.lab.bench import measure, tables
    from fairseq_aggdec.lab.verify.references import refuse_differing

    record = measure.measure(args, modes, options.command("bench", argv))
    try:
        if args.json:
            record.save(args.json)
    finally:  # also where the disk is full
        print(tables.markdown(record))
    refuse_differing({f"{run.mode} at batch size {run.batch_size}": run.differing or 0 for run in record.runs})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="aggdec bench", description="Time decoding modes on the same sentences, in turns."
    )
    options.add_subject_options(parser)
    options.add_task_option(parser)
    parser.add_argument("--reference", type=Path, help="file with the subset's targets as running text, for BLEU")
    parser.add_argument("--limit", type=int, help="only the first N sentences")
    parser.add_argument(
        "--modes",
        default="beam5,beam1,greedy,iad",
        help=f"comma separated, from {KNOWN}; beamN is fairseq's own search, +whole is --drafts whole "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--peers",
        default="",
        help="ctranslate2: the same checkpoint, in fp32 and int8, greedy and beam of 5; or some of these, such as "
        "ctranslate2:greedy,ctranslate2:greedy@int8; needs the package ctranslate2",
    )
    parser.add_argument(
        "--nat-peer",
        action="append",
        default=[],
        metavar="LABEL=PATH[:ITERATIONS[:LENGTH-BEAM]]",
        help="a model of fairseq's task translation_lev (NAT, iNAT, CMLM, Levenshtein Transformer), decoded in so many "
        "passes at most (default: 10), with so many candidate lengths (default: 1); can be repeated",
    )
    parser.add_argument(
        "--batch-sizes",
        "--batch-size",
        type=options.numbers(int, 1),
        default=[1],
        help="comma separated, one after another (default: 1)",
    )
    parser.add_argument("--repeats", type=int, default=3, help="how often each mode is timed (default: 3)")
    parser.add_argument(
        "--drafts",
        choices=DRAFTS,
        default="auto",
        help="whole: verify whole drafts, as in the papers; auto: only what saves time (default: auto)",
    )
    options.add_half_precision_options(parser)
    for name, what in (
        ("profile", "measure the time by module, in a further round"),
        ("memory", "measure peak memory"),
    ):
        parser.add_argument(f"--{name}", action=argparse.BooleanOptionalAction, default=True, help=what)
    parser.add_argument(
        "--json", type=Path, metavar="OUT", help="write all measurements to this file, for aggdec report"
    )
    search = parser.add_argument_group(
        "search (as in fairseq-generate)", "for all modes; refused where a peer cannot honour one"
    )
    add_search_options(search)
    search.add_argument(
        "--block-ngrams",
        action="store_true",
        help="make --no-repeat-ngram-size work in this plugin's modes on a CPU, where fairseq's own search (beamN) "
        "ignores it and then has other outputs",
    )
    search.add_argument("--truncate-source", action="store_true", help="cut sources to --max-source-positions")
    search.add_argument(
        "--max-source-positions", type=int, help="most tokens of a source, EOS included (default: 1024)"
    )
    options.add_random_model_options(parser)
    return parser


def _check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Exit where options make no sense."""
    options.check_least(parser, args, 1, "repeats", "max_source_positions")
    if args.block_ngrams and not args.no_repeat_ngram_size:
        parser.error("--block-ngrams goes with --no-repeat-ngram-size")
    of_translation = [name for name in ("peers", "nat_peer", "truncate_source") if getattr(args, name)]
    if args.task != "translation" and of_translation:
        parser.error(f"{option_name(of_translation[0])} goes with the task translation, not with --task {args.task}")
    others = [name for name in ("reference", "nat_peer") if getattr(args, name)]
    options.check_random_model_options(parser, args, *map(option_name, [*others, *given_settings(args)]))


if __name__ == "__main__":
    main()
