"""`aggdec distill`: from its options to `pipeline.Distillation`."""

from __future__ import annotations

import argparse
import dataclasses

from fairseq_aggdec.distillation import pipeline
from fairseq_aggdec.distillation.data_bin import DataBin
from fairseq_aggdec.distillation.environment import device_of_environment, shard_of_environment
from fairseq_aggdec.distillation.settings import DECODINGS, MAX_TOKENS, SearchOptions
from fairseq_aggdec.distillation.translator import fingerprints
from fairseq_aggdec.errors import AggdecError


def distill(args: argparse.Namespace) -> None:
    """Run `aggdec distill` with its parsed options.

    Raises:
        AggdecError: a file or an option cannot be used.
    """
    data = DataBin.find(args.data, args.source_lang, args.target_lang)
    splits = list(dict.fromkeys(split for names in args.subset or () for split in names.split(",")))
    job = pipeline.Distillation(data, args.output, splits or data.training_splits(), args.keep_skipped)
    names = [field.name for field in dataclasses.fields(SearchOptions)]
    search = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    if args.from_generate:
        job.gather_generate_output(args.from_generate, args.max_source_len)
    elif args.gather:
        expected = search | {
            name: getattr(args, name)
            for name in ("max_tokens", "batch_size", "precision", "decoding")
            if getattr(args, name)
        }
        if args.teacher:
            expected["teacher"] = fingerprints(args.teacher)
        if not splits:
            job.refuse_further_shards()
        job.gather(args.num_shards, expected)
    else:
        shard, shards = _shard(args, shard_of_environment())
        device = device_of_environment(args.cpu, args.precision)
        options = pipeline.DecodingOptions(
            args.max_tokens or MAX_TOKENS,
            args.batch_size,
            args.max_source_len,
            args.precision or "fp32",
            SearchOptions(**search),
            args.decoding or DECODINGS[0],
        )
        job.decode(args.teacher, options, device, shard, shards)


def _shard(args: argparse.Namespace, of_environment: tuple[int, int] | None) -> tuple[int, int]:
    """The number of this shard, and the number of shards.

    Raises:
        AggdecError: --shard-id is missing or out of range.
    """
    if args.num_shards is None:
        return of_environment or (0, 1)
    if args.shard_id is None and args.num_shards > 1:
        raise AggdecError(f"--num-shards {args.num_shards}: needs --shard-id, or --gather when all shards are finished")
    shard = args.shard_id or 0
    if not 0 <= shard < args.num_shards:
        raise AggdecError(f"--shard-id {shard}: must be at least 0 and below --num-shards {args.num_shards}")
    return shard, args.num_shards
