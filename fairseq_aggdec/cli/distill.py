"""`aggdec distill DATA-BIN OUT-BIN --teacher CKPT[:CKPT2...]`: training targets written by a teacher."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.bulk.settings import DECODINGS, SHARD_SENTENCES
from fairseq_aggdec.cli import options
from fairseq_aggdec.errors import on_command_line
from fairseq_aggdec.files import check_checkpoints
from fairseq_aggdec.generation.options import SearchOptions, add_search_options, given_search_options

_EPILOG = """\
To go on after a command was killed, start it again. Shards are kept in OUT-BIN.shards; OUT-BIN exists only when it is
complete. Several commands with RANK and WORLD_SIZE in the environment, as under torchrun, share the shards: start the
command once more, without these two, to put them together."""


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help."""
    parser = _parser()
    args = parser.parse_args(argv)
    _check(parser, args)
    options.start_distilling()
    from fairseq_aggdec.bulk.data_bin import DataBin
    from fairseq_aggdec.bulk.running import Workers
    from fairseq_aggdec.train.distilling import Teacher, distil

    data = DataBin.find(args.data, args.source_lang, args.target_lang)
    splits = list(dict.fromkeys(split for names in args.subset or () for split in names.split(",")))
    threads = args.threads or (max(1, (os.cpu_count() or 1) // args.workers) if args.workers > 1 else None)
    search = SearchOptions(**{"beam": args.beam, **given_search_options(args)})
    teacher = Teacher(args.teacher, data, search, args.decoding, args.precision or "fp32", args.cpu, threads)
    workers = Workers(args.engine, args.workers, threads or 1, args.cpu)
    limits = (args.max_tokens, args.batch_size, args.max_source_len, args.shard_sentences)
    distil(teacher, args.output, splits or data.training_splits(), workers, args.keep_skipped, *limits)


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
    parser.add_argument(
        "--teacher", required=True, help="checkpoint, or several joined by ':' that decode as an ensemble"
    )
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

    work = parser.add_argument_group("work")
    options.add_work_options(work, None, "(default: the processor's cores, shared out among the workers)")
    work.add_argument(
        "--shard-sentences",
        type=int,
        default=SHARD_SENTENCES,
        help="number of different sources in a shard, which a killed run loses (default: %(default)s)",
    )

    search = parser.add_argument_group("search (as in fairseq-generate)")
    search.add_argument("--beam", type=int, default=5, help="default: %(default)s")
    search.add_argument(
        "--decoding",
        choices=DECODINGS,
        default=DECODINGS[0],
        help="beam: fairseq's own search; aggressive-beam: the same targets by this plugin's, which is faster in small "
        "batches (default: beam)",
    )
    add_search_options(search)

    speed = parser.add_argument_group("batches and device")
    options.add_batch_options(speed)
    speed.add_argument(
        "--max-source-len", type=int, help="skip longer sources, EOS included (default: what the teacher takes)"
    )
    return parser


def _check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    names = ("beam", "max_tokens", "batch_size", "max_source_len", "max_len_b", "workers", "threads", "shard_sentences")
    options.check_least(parser, args, 1, *names)
    check_checkpoints(args.teacher)


if __name__ == "__main__":
    main()
