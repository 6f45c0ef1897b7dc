"""Decoding one shard of a split with the teacher, from where an earlier run stopped."""

from __future__ import annotations

import logging
import sys

from tqdm import tqdm

from fairseq_aggdec.distillation.batches import BatchPlan, plan_batches
from fairseq_aggdec.distillation.data_bin import DataBin, Side
from fairseq_aggdec.distillation.settings import ShardSettings
from fairseq_aggdec.distillation.shard_file import DecodedBatch, ShardName, open_shard
from fairseq_aggdec.distillation.translator import Translator

logger = logging.getLogger(__name__)

_NAMED = 5
"""the most skipped sentences that are named"""


def plan_for(sources: Side, settings: ShardSettings) -> BatchPlan:
    """The batches of a split's sources under these settings."""
    return plan_batches(
        (sources[number] for number in range(len(sources))),
        settings.longest_source,
        settings.max_tokens,
        settings.batch_size,
    )


def decode_shard(name: ShardName, settings: ShardSettings, data: DataBin, teacher: Translator) -> None:
    """Decodes the batches of a shard that its file does not hold, and appends them.

    Raises:
        AggdecError: the file belongs to another run; see `open_shard`.
    """
    sources = data.source(settings.split)
    plan = plan_for(sources, settings)
    batches = plan.of_shard(name.shard, name.shards)
    logger.info(
        f"{settings.split}: {len(sources):,} sentences, {sum(map(len, plan.batches)):,} different sources in "
        f"{len(plan.batches):,} batches, {len(batches):,} of them in shard {name.shard} of {name.shards}"
    )
    report_skipped(plan, sources, settings)
    with open_shard(name, settings, batches) as shard:
        if shard.cut:
            logger.warning(f"{name}: its last {shard.cut:,} bytes were torn or damaged; redone")
        sizes = [len(plan.batches[number]) for number in batches]
        with tqdm(
            total=sum(sizes),
            initial=sum(sizes[: shard.done]),
            desc=f"{settings.split} {name.shard}/{name.shards}",
            unit=" sentences",
            smoothing=0.05,
            mininterval=0.5 if sys.stderr.isatty() else 30,
        ) as bar:
            for number in batches[shard.done :]:
                sentences = plan.batches[number].tolist()
                # what a schedule has learnt decides which near-ties round up: it depends on no other batch
                teacher.start_afresh()
                targets = teacher.translate(sentences, [sources[sentence] for sentence in sentences])
                shard.write(DecodedBatch(number, sentences, targets))
                bar.update(len(sentences))


def report_skipped(plan: BatchPlan, sources: Side, settings: ShardSettings) -> None:
    """Logs how many sentences are not decoded, and the first of them."""
    skipped = plan.skipped
    if len(skipped) == 0:
        return
    sizes = sources.sizes
    named = ", ".join(f"{number} ({sizes[number]} tokens)" for number in skipped[:_NAMED])
    logger.warning(
        f"{settings.split}: {len(skipped):,} of {len(sources):,} sources are empty or longer than "
        f"{settings.longest_source} tokens and are skipped: number {named}{', ...' if len(skipped) > _NAMED else ''}"
    )
