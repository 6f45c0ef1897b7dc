"""`aggdec-distill DATA-BIN OUT-BIN --teacher CKPT[:CKPT2...]`: targets written by a teacher."""

import argparse
import dataclasses
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.search_options import add_search_options

_MAX_TOKENS = 4000
_EPILOG = """\
Without shards one process does it all. With shards each of them is a process of its own, and --gather is run last:
  aggdec-distill data-bin distilled --teacher model.pt --num-shards 8 --shard-id 0     (... up to --shard-id 7)
  aggdec-distill data-bin distilled --gather
Under torchrun the ranks are the shards. A command that was killed is started again as it was and goes on where it
stopped. Shards are kept in OUT-BIN.shards; OUT-BIN is there only when it is complete."""


def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help."""
    parser = _parser()
    args = parser.parse_args(argv)
    with on_command_line():
        _check(parser, args)
        logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
        logging.getLogger("fairseq").setLevel(logging.WARNING)
        _run(args)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="aggdec-distill",
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
        help="what to distil, such as train,valid; can be repeated (default: train, train1, ...)",
    )
    parser.add_argument("--keep-skipped", action="store_true", help="skipped sentences stay, with the original target")

    shards = parser.add_argument_group("shards")
    shards.add_argument("--num-shards", type=int, help="number of processes that share the work (default: 1)")
    shards.add_argument("--shard-id", type=int, help="which of them this is: 0 ... NUM-SHARDS - 1")
    shards.add_argument("--gather", action="store_true", help="put finished shards together, decode nothing")
    shards.add_argument(
        "--from-generate", type=Path, nargs="+", metavar="FILE", help="with --gather: outputs of fairseq-generate"
    )

    search = parser.add_argument_group("search (as in fairseq-generate)")
    search.add_argument("--beam", type=int, help="default: 5")
    add_search_options(search)

    speed = parser.add_argument_group("batches and device")
    speed.add_argument("--max-tokens", type=int, help=f"source tokens a batch, with padding (default: {_MAX_TOKENS})")
    speed.add_argument("--batch-size", type=int, help="at most so many sentences a batch (default: no limit)")
    speed.add_argument(
        "--max-source-len", type=int, help="skip longer sources, EOS included (default: what the teacher takes)"
    )
    speed.add_argument("--cpu", action="store_true", help="use no GPU")
    precision = speed.add_mutually_exclusive_group()
    precision.add_argument("--fp16", action="store_const", const="fp16", dest="precision", help="half precision")
    precision.add_argument("--bf16", action="store_const", const="bf16", dest="precision", help="bfloat16")
    return parser


def _check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    for name in ("beam", "max_tokens", "batch_size", "max_source_len", "num_shards", "max_len_b"):
        value = getattr(args, name)
        if value is not None and value < 1:
            parser.error(f"--{name.replace('_', '-')} {value}: must be at least 1")
    if args.from_generate and not args.gather:
        parser.error("--from-generate goes with --gather")
    if args.gather and args.shard_id is not None:
        parser.error("--shard-id does not go with --gather, which takes all shards")
    if not args.gather and not args.teacher:
        parser.error("--teacher is needed: the checkpoint that decodes the data")
    if args.shard_id is not None and args.num_shards is None:
        parser.error("--shard-id needs --num-shards")


def _run(args: argparse.Namespace) -> None:
    import fairseq_aggdec

    fairseq_aggdec.register()
    from fairseq_aggdec.distillation import pipeline
    from fairseq_aggdec.distillation.data_bin import DataBin
    from fairseq_aggdec.distillation.settings import SearchOptions
    from fairseq_aggdec.translator import fingerprints

    data = DataBin.find(args.data, args.source_lang, args.target_lang)
    splits = list(dict.fromkeys(split for names in args.subset or () for split in names.split(",")))
    job = pipeline.Distillation(data, args.output, splits or data.training_splits(), args.keep_skipped)
    names = [field.name for field in dataclasses.fields(SearchOptions)]
    search = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    if args.from_generate:
        job.gather_generate_output(args.from_generate, args.max_source_len)
    elif args.gather:
        expected = search | {
            name: getattr(args, name) for name in ("max_tokens", "batch_size", "precision") if getattr(args, name)
        }
        if args.teacher:
            expected["teacher"] = fingerprints(args.teacher)
        if not splits:
            job.refuse_further_shards()
        job.gather(args.num_shards, expected)
    else:
        shard, shards = _shard(args, pipeline.shard_of_environment())
        device = pipeline.device_of_environment(args.cpu)
        if args.precision == "fp16" and device.type == "cpu":
            raise AggdecError("--fp16 is for GPUs; take --bf16 where the processor multiplies bfloat16, or neither")
        options = pipeline.DecodingOptions(
            args.max_tokens or _MAX_TOKENS,
            args.batch_size,
            args.max_source_len,
            args.precision or "fp32",
            SearchOptions(**search),
        )
        job.decode(args.teacher, options, device, shard, shards)


def _shard(args: argparse.Namespace, of_environment: tuple[int, int] | None) -> tuple[int, int]:
    """Number of this shard, and how many there are.

    Raises:
        AggdecError: the options say it by half, or a number that does not exist.
    """
    if args.num_shards is None:
        return of_environment or (0, 1)
    if args.shard_id is None and args.num_shards > 1:
        raise AggdecError(f"--num-shards {args.num_shards}: needs --shard-id, or --gather when all shards are finished")
    shard = args.shard_id or 0
    if not 0 <= shard < args.num_shards:
        raise AggdecError(f"--shard-id {shard}: must be at least 0 and below --num-shards {args.num_shards}")
    return shard, args.num_shards


if __name__ == "__main__":
    main()
