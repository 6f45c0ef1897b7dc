"""`aggdec distill DATA-BIN OUT-BIN --teacher CKPT[:CKPT2...]`: training targets written by a teacher."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.cli import options
from fairseq_aggdec.distillation.settings import DECODINGS
from fairseq_aggdec.errors import on_command_line
from fairseq_aggdec.tasks.search_options import add_search_options

_EPILOG = """\
Without shards one process does everything. With shards each one is a process, and --gather is run last:
  aggdec distill data-bin distilled --teacher model.pt --num-shards 8 --shard-id 0     (... up to --shard-id 7)
  aggdec distill data-bin distilled --gather
Under torchrun the ranks are the shards. To go on after a command was killed, start it again. Shards are kept in
OUT-BIN.shards; OUT-BIN exists only when it is complete."""


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help."""
    parser = _parser()
    args = parser.parse_args(argv)
    _check(parser, args)
    options.start_distilling()
    from fairseq_aggdec.distillation.distill_command import distill

    distill(args)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="aggdec distill",
        description="Decode the training split (or others) with a teacher and write a data folder with the teacher's "
        "translations as targets; other splits and the dictionaries stay.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", type=Path, metavar="DATA-BIN", help="folder made by fairseq-preprocess")
    parser.add_argument("output", type=Path, metavar="OUT-BIN", help="folder to make")
    parser.add_argument("--teacher", help="checkpoint, or several joined by ':' that decode as an ensemble")
    parser.add_argument("-s", "--source-lang")
    parser.add_argument("-t", "--target-lang")
    parser.add_argument(
        "--subset",
        action="append",
        metavar="SPLIT[,SPLIT...]",
        help="splits to distil, such as train,valid; can be repeated (default: train, train1, ...)",
    )
    parser.add_argument(
        "--keep-skipped", action="store_true", help="keep skipped sentences, with their original target"
    )

    shards = parser.add_argument_group("shards")
    shards.add_argument("--num-shards", type=int, help="number of processes that share the work (default: 1)")
    shards.add_argument("--shard-id", type=int, help="number of this one, from 0 to NUM-SHARDS - 1")
    shards.add_argument("--gather", action="store_true", help="decode nothing, put the finished shards together")
    shards.add_argument(
        "--from-generate", type=Path, nargs="+", metavar="FILE", help="with --gather: outputs of fairseq-generate"
    )

    search = parser.add_argument_group("search (as in fairseq-generate)")
    search.add_argument("--beam", type=int, help="default: 5")
    search.add_argument(
        "--decoding",
        choices=DECODINGS,
        help="beam: fairseq's own search; aggressive-beam: the same targets by this plugin's, which is faster in small "
        "batches (default: beam)",
    )
    add_search_options(search)

    speed = parser.add_argument_group("batches and device")
    options.add_batch_options(speed, default=None)
    speed.add_argument(
        "--max-source-len", type=int, help="skip longer sources, EOS included (default: what the teacher takes)"
    )
    return parser


def _check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    names = ("beam", "max_tokens", "batch_size", "max_source_len", "num_shards", "max_len_b")
    options.check_least(parser, args, 1, *names)
    if args.from_generate and not args.gather:
        parser.error("--from-generate goes with --gather")
    if args.gather and args.shard_id is not None:
        parser.error("--shard-id does not go with --gather, which takes all shards")
    if not args.gather and not args.teacher:
        parser.error("--teacher is needed: the checkpoint that decodes the data")
    if args.shard_id is not None and args.num_shards is None:
        parser.error("--shard-id needs --num-shards")


if __name__ == "__main__":
    main()
