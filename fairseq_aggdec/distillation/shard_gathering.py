"""Putting the targets of all shards together, in the order of the sentences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.distillation.batches import BatchPlan
from fairseq_aggdec.distillation.data_bin import DataBin, Tokens
from fairseq_aggdec.distillation.settings import ShardSettings
from fairseq_aggdec.distillation.shard_decoding import plan_for, report_skipped
from fairseq_aggdec.distillation.shard_file import DecodedBatch, ShardName, read_shard
from fairseq_aggdec.errors import AggdecError


def find_shards(folder: Path, split: str, shards: int | None = None) -> list[ShardName]:
    """All shards of a split, also those without a file.

    Args:
        folder: the folder of shards.
        split: the split's name.
        shards: how many shards there are; None: as many as the names of the files say.

    Raises:
        AggdecError: there is no shard, or the names of the files disagree about the number.
    """
    numbers = sorted({name.shards for name in ShardName.all_in(folder, split)})
    if not numbers:
        raise AggdecError(f"{folder}: has no shard of {split}; run aggdec distill without --gather first")
    if shards is None and len(numbers) > 1:
        raise AggdecError(
            f"{folder}: has shards of {' and of '.join(map(str, numbers))} for {split}; say which to take with "
            "--num-shards"
        )
    count = shards or numbers[0]
    return [ShardName(folder, split, shard, count) for shard in range(count)]


def gather_shards(names: Sequence[ShardName], data: DataBin) -> tuple[ShardSettings, list[Tokens | None]]:
    """Reads the targets of one split from its shards.

    Args:
        names: all shards, from `find_shards`.
        data: the data that they were decoded from.

    Returns:
        the settings of the shards, and the target of each sentence, None where it was skipped.

    Raises:
        AggdecError: a shard is missing, unfinished, damaged, or of other settings or data; the message names it.
    """
    contents = [read_shard(name) for name in names]
    settings = contents[0][0]
    for name, (others, _) in zip(names, contents, strict=True):
        if difference := others.difference(settings, "here", "in shard 0"):
            raise AggdecError(f"{name}: was decoded with other settings than shard 0 ({difference}); redo one of them")
    if settings.data != data.fingerprint(settings.split):
        raise AggdecError(
            f"{names[0]}: was decoded from other data than {data.folder} holds now; name the folder it was made from, "
            "or decode again"
        )
    sources = data.source(settings.split)
    plan = plan_for(sources, settings)
    report_skipped(plan, sources, settings)
    found: dict[int, Tokens] = {}
    for name, (_, batches) in zip(names, contents, strict=True):
        _check(name, batches, plan, data)
        for batch in batches:
            found.update(zip(batch.sentences, batch.targets, strict=True))
    return settings, [found.get(int(number)) for number in plan.representative]


def _check(name: ShardName, batches: Sequence[DecodedBatch], plan: BatchPlan, data: DataBin) -> None:
    """Raises `AggdecError` unless a shard holds exactly its batches, and each batch its sentences."""
    expected = plan.of_shard(name.shard, name.shards)
    for number, batch in zip(expected, batches, strict=False):
        if batch.batch != number or batch.sentences != plan.batches[number].tolist():
            raise AggdecError(f"{name}: batch {batch.batch} holds other sentences than it should; delete the file")
        if len(batch.targets) != len(batch.sentences):
            raise AggdecError(
                f"{name}: batch {batch.batch} holds {len(batch.targets)} targets for {len(batch.sentences)} sentences; "
                "delete the file"
            )
        symbols, eos = len(data.target_dictionary), data.target_dictionary.eos()
        for sentence, target in zip(batch.sentences, batch.targets, strict=True):
            if len(target) == 0 or target[-1] != eos or target.min() < 0 or target.max() >= symbols:
                raise AggdecError(f"{name}: the target of sentence {sentence} is no sentence of the target dictionary")
    if len(batches) != len(expected):
        raise AggdecError(f"{name}: holds {len(batches)} of its {len(expected)} batches; {name.advice()}")
