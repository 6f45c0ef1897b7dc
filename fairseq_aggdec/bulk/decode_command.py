"""`aggdec decode`: from its options to its output folder."""

from __future__ import annotations

import argparse
import logging
import math
import shutil
import sys
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from fairseq_aggdec.bulk import engines
from fairseq_aggdec.bulk.output_folder import OutputFolder
from fairseq_aggdec.bulk.shards import STDIN, DecodedShard, Shard, cut
from fairseq_aggdec.bulk.worker import Worker, text_encoders
from fairseq_aggdec.distillation.data_bin import DataBin
from fairseq_aggdec.distillation.environment import shard_of_environment
from fairseq_aggdec.distillation.translator import fingerprints
from fairseq_aggdec.errors import AggdecError, option_name
from fairseq_aggdec.files import file_sha256, refuse_overwriting, written_whole

logger = logging.getLogger(__name__)

_NAMED = 5
"""the most skipped lines that are named"""
_NOT_RECORDED = ("data", "path", "input", "output", "engine", "workers")
"""options that do not change the outputs, or whose files are recorded by their fingerprints"""


def decode(args: argparse.Namespace, task_options: dict[str, Any], given: dict[str, Any]) -> None:
    """Decodes the shards of this process that are not finished.

    Args:
        args: the options of `aggdec decode`, checked.
        task_options: the options of the plugin's task.
        given: the options that differ from their defaults.

    Raises:
        AggdecError: a file or an option cannot be used.
    """
    data = DataBin.find(Path(args.data), args.source_lang, args.target_lang)
    settings = _settings(args, given, data)
    rank, ranks = shard_of_environment() or (0, 1)
    if ranks > 1 and "-" in args.input:
        raise AggdecError("--input -: several commands (RANK, WORLD_SIZE) cannot share a standard input: give a file")
    text_encoders(args, data)
    cuts = {name: list(cut(Path(name), args.shard_lines)) for name in args.input if name != "-"}
    output = OutputFolder(args.output, settings)
    refuse_overwriting(output.skipped_file, map(Path, args.input))
    if "-" in args.input:
        cuts["-"] = _spooled(output, args.shard_lines)
    paths = [args.output / STDIN if name == "-" else Path(name) for name in args.input]
    shards = [shard for name in args.input for shard in cuts[name]]
    output.refuse_shards_behind(shards)
    mine = shards[rank::ranks]
    left = [shard for shard in mine if not output.is_finished(shard)]
    lines, lines_left = (sum(shard.lines for shard in some) for some in (mine, left))
    logger.info(f"to decode: {lines_left:,} of {lines:,} lines, {len(left):,} of {len(mine):,} shards")
    with (
        tqdm(
            total=lines,
            initial=lines - lines_left,
            unit=" lines",
            smoothing=0.05,
            mininterval=0.5 if sys.stderr.isatty() else 30,
        ) as bar,
        closing(_decoded(left, args, task_options)) as decoded_shards,
    ):  # ends the workers, whatever happens
        for decoded in decoded_shards:
            output.write(decoded)
            bar.update(decoded.shard.lines)
    if all(map(output.is_finished, shards)):
        skipped = output.report(shards)
        if skipped:
            named = "; ".join(f"{path}, line {number}: {why}" for path, number, why in skipped[:_NAMED])
            logger.warning(
                f"{len(skipped):,} lines were not decoded as a whole: their outputs are empty, or, of a corrector, "
                f"as they were ({output.skipped_file}): "
                f"{named}{'; ...' if len(skipped) > _NAMED else ''}"
            )
        for path in paths:
            logger.info(f"{path} is decoded: cat {args.output}/{path.name}.*.txt")


def _decoded(
    shards: Sequence[Shard], args: argparse.Namespace, task_options: dict[str, Any]
) -> Generator[DecodedShard]:
    worker, workers = Worker(args, task_options), min(args.workers, len(shards))
    if args.engine == "ray" and shards:
        return engines.run_ray(shards, worker, args.workers, args.threads, args.cpu)
    if workers <= 1:
        return (worker.decode(shard) for shard in shards)
    return engines.run_local(shards, worker, workers)


def _settings(args: argparse.Namespace, given: dict[str, Any], data: DataBin) -> dict[str, Any]:
    """The settings that outputs depend on; for files their fingerprints.

    Raises:
        AggdecError: a checkpoint is missing.
    """
    settings = {
        "checkpoints": fingerprints(args.path),
        "source dictionary": file_sha256(data.folder / f"dict.{data.source_lang}.txt"),
        "target dictionary": file_sha256(data.folder / f"dict.{data.target_lang}.txt"),
        "--shard-lines": args.shard_lines,
    }
    for name, value in given.items():
        if name not in _NOT_RECORDED:
            is_file = isinstance(value, str) and Path(value).is_file()
            if isinstance(value, float) and math.isinf(value):  # JSON has no such number
                value = str(value)
            settings[option_name(name)] = file_sha256(Path(value)) if is_file else value
    return settings


def _spooled(output: OutputFolder, lines: int) -> list[Shard]:
    """Saves the standard input in a file, of which workers can read parts; its shards of so many lines.

    Raises:
        AggdecError: it is not the one that was decoded before, whose file stays.
    """
    path = output.folder / STDIN
    with written_whole(path) as partial:
        with partial.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        shards = [replace(shard, path=str(path.resolve())) for shard in cut(partial, lines)]
        output.refuse_shards_behind(shards)
        for shard in shards:
            output.is_finished(shard)
    return shards
