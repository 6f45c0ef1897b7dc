"""`aggdec-bench`: decoding modes side by side on a binarised test set, or on a random model of a paper's size."""

import argparse
import logging
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.benchmarking.modes import parse_modes
from fairseq_aggdec.benchmarking.search_settings import SearchSettings
from fairseq_aggdec.errors import on_command_line
from fairseq_aggdec.models.sizes import SIZES
from fairseq_aggdec.search_options import add_search_options, option

RANDOM_MODELS = tuple(SIZES)


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the benchmark; see --help.

    Raises:
        AggdecError: options or files cannot be used, or, after all is printed and saved, a lossless mode had another
            output than greedy decoding.
    """
    parser = _parser()
    args = parser.parse_args(argv)
    _check(parser, args)
    modes = parse_modes(args.modes, args.peers, args.nat_peer, args.cuda_graphs)
    SearchSettings.of(args).check_peers(modes)

    logging.basicConfig(level=logging.WARNING, format="%(levelname)s | %(message)s")
    logging.getLogger("fairseq").setLevel(logging.WARNING)
    import torch

    import fairseq_aggdec

    if args.threads:
        torch.set_num_threads(args.threads)
    fairseq_aggdec.register()
    from fairseq_aggdec.benchmarking import measure, report
    from fairseq_aggdec.benchmarking.alarm import refuse

    command = shlex.join(["aggdec-bench", *(sys.argv[1:] if argv is None else argv)])
    record = measure.measure(args, modes, command)
    if args.json:
        record.save(args.json)
    print(report.markdown(record))
    refuse({f"{run.mode} at batch size {run.batch_size}": run.differing for run in record.runs})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="aggdec-bench", description="Time decoding modes on the same sentences, interleaved, in one process."
    )
    parser.add_argument("data", nargs="?", help="folder made by fairseq-preprocess")
    parser.add_argument("--path", help="checkpoint, or several joined by ':'")
    parser.add_argument("--gen-subset", default="test", help="split to decode (default: test)")
    parser.add_argument("-s", "--source-lang")
    parser.add_argument("-t", "--target-lang")
    parser.add_argument("--drafter-path", help="the drafter's checkpoint, for nar, gad and gad++")
    parser.add_argument("--block-size", type=int, default=0, help="tokens a draft (default: what the drafter learned)")
    parser.add_argument("--reference", type=Path, help="running text of the subset's targets, for BLEU")
    parser.add_argument("--limit", type=int, help="only the first N sentences")
    parser.add_argument(
        "--modes",
        default="beam5,beam1,greedy,iad",
        help="comma separated, from beamN (fairseq's own), greedy, iad, nar, gad, gad++, gad++:BETA:TOLERANCE, "
        "blockwise, blockwise:BETA; with @fp32, @fp16, @bf16, @int8 or @exact (bit-exact) in another precision "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--peers",
        default="",
        help="ctranslate2: the same checkpoint, in fp32 and int8, greedy and beam of 5; or some of these, such as "
        "ctranslate2:greedy,ctranslate2:greedy@int8. Needs the package ctranslate2",
    )
    parser.add_argument(
        "--nat-peer",
        action="append",
        default=[],
        metavar="LABEL=PATH[:ITERATIONS[:LENGTH-BEAM]]",
        help="a model of fairseq's task translation_lev (NAT, iNAT, CMLM, Levenshtein Transformer), decoded in so many "
        "passes at most (default: 10), for so many lengths side by side (default: 1); repeatable",
    )
    parser.add_argument(
        "--batch-sizes", "--batch-size", default="1", help="comma separated, one after another (default: 1)"
    )
    parser.add_argument("--repeats", type=int, default=3, help="how often each mode runs (default: 3)")
    parser.add_argument("--threads", type=int, help="of PyTorch and of the peers")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default: cpu")
    parser.add_argument(
        "--cuda-graphs",
        action="store_true",
        help="with --device cuda: each mode of this plugin once more with steps recorded as CUDA graphs, beside it; "
        "MODE+graphs in --modes does so for one",
    )
    precision = parser.add_mutually_exclusive_group()
    for name in ("fp16", "bf16"):
        precision.add_argument(f"--{name}", action="store_true", help="for all modes that name no precision")
    for name, what in (("profile", "one more round of each mode of the plugin, by module"), ("memory", "peak memory")):
        parser.add_argument(f"--{name}", action=argparse.BooleanOptionalAction, default=True, help=what)
    parser.add_argument("--json", type=Path, metavar="OUT", help="write all that was measured, for aggdec-report")
    search = parser.add_argument_group(
        "search (as in fairseq-generate)", "for all modes alike; a peer that cannot honour one is refused"
    )
    add_search_options(search)
    search.add_argument(
        "--block-ngrams",
        action="store_true",
        help="make --no-repeat-ngram-size work in this plugin's modes on a CPU, where fairseq's own search ignores it: "
        "its outputs (beamN) are then other ones",
    )
    search.add_argument("--truncate-source", action="store_true", help="cut sources to --max-source-positions")
    search.add_argument("--max-source-positions", type=int, help="tokens of a source, EOS included (default: 1024)")
    random = parser.add_argument_group(
        "random models", "full sizes without training; drafts are made from greedy's output, decoded beforehand"
    )
    random.add_argument("--random-model", choices=RANDOM_MODELS, help="in place of DATA and --path")
    random.add_argument("--length", type=int, default=25, help="tokens of source and output (default: 25)")
    random.add_argument(
        "--edit-ratio",
        type=float,
        default=0.1,
        help="of iad: edits between the text that is copied from and the output, a token; iad~0.2 sets it for one mode "
        "(default: 0.1)",
    )
    random.add_argument(
        "--accepted",
        type=float,
        default=5.5,
        help="of gad and gad++: mean tokens an iteration; gad~7 sets it for one mode (default: 5.5)",
    )
    random.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the models here, for further runs")
    random.add_argument("--drafter-layers", type=int, default=2, help="of the random drafter's decoder (default: 2)")
    return parser


def _check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Exits where options make no sense, and turns --batch-sizes into numbers."""
    for name in ("limit", "repeats", "threads", "length", "drafter_layers", "max_len_b", "max_source_positions"):
        value = getattr(args, name)
        if value is not None and value < 1:
            parser.error(f"{option(name)} {value}: must be at least 1")
    try:
        sizes = [int(size) for size in args.batch_sizes.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1 or len(set(sizes)) < len(sizes):
        parser.error(f"--batch-sizes {args.batch_sizes}: give different numbers of at least 1, separated by commas")
    args.batch_sizes = sizes
    if args.cuda_graphs and args.device != "cuda":
        parser.error("--cuda-graphs needs --device cuda")
    if args.block_ngrams and not args.no_repeat_ngram_size:
        parser.error("--block-ngrams goes with --no-repeat-ngram-size")
    if not 0 <= args.edit_ratio <= 1:
        parser.error(f"--edit-ratio {args.edit_ratio}: must be from 0 to 1")
    if args.accepted < 1:
        parser.error(f"--accepted {args.accepted}: must be at least 1")
    if args.random_model:
        given = [
            name for name, value in (("DATA", args.data), ("--path", args.path), ("--drafter-path", args.drafter_path),
                                     ("--reference", args.reference), ("--nat-peer", args.nat_peer)) if value
        ]  # fmt: skip
        given += [option(name) for name in SearchSettings.of(args).given]
        if given:
            parser.error(f"--random-model makes up its own data, models and lengths: leave out {', '.join(given)}")
    elif not args.data or not args.path:
        parser.error("give DATA and --path, or --random-model")


if __name__ == "__main__":
    main()
