"""Runs `aggdec tune`: from its options to its table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import file_sha256, read_text_lines
from fairseq_aggdec.lab.bench.machine import machine
from fairseq_aggdec.lab.bench.runs import Runs
from fairseq_aggdec.lab.bench.subject import Subject, read_subject
from fairseq_aggdec.lab.score.m2_file import read_m2
from fairseq_aggdec.lab.score.metrics import choose_metrics
from fairseq_aggdec.lab.score.reference_set import ReferenceSet, check_sources
from fairseq_aggdec.lab.tune.sweep import Setting, Sweep, all_settings, fastest, table


def tune(args: Any) -> None:
    """Measure the settings that the options ask for, and print them with the chosen ones.

    Raises:
        AggdecError: files do not belong together, or --output was measured under other conditions.
    """
    subject, test, dictionary = _read(args)
    metric = choose_metrics([args.metric], test)[args.metric]

    def quality(outputs: Mapping[int, Sequence[int]]) -> float:
        return metric.score(test, [_words(dictionary, outputs[number]) for number in sorted(outputs)])[-1]

    sweep = Sweep.open(args.output, _conditions(args, subject, test))
    with Runs(subject) as runs:

        def measure(settings: Sequence[Setting]) -> None:
            sweep.measure(args.output, runs, quality, settings, args.beam, args.batch_size, args.repeats)

        sizes, by_size = args.block_sizes, all_settings(args.block_sizes, args.betas[:1], args.tolerances[:1])
        measure(by_size)
        if not args.full_grid:
            assert sweep.baselines is not None
            first = [point for point in sweep.points if point.setting in by_size]
            best = fastest(first, sweep.baselines.greedy_quality - args.loss) or fastest(first, -math.inf)
            sizes = [best.setting.block_size] if best else []
        measure(all_settings(sizes, args.betas, args.tolerances))
    print(table(sweep, metric.columns[-1], args.margin, args.loss))


def _read(args: Any) -> tuple[Subject, ReferenceSet, Any]:
    """The sentences to decode, their references, and the target dictionary."""
    subject, task = read_subject(args)
    dataset = task.dataset(args.gen_subset)
    if dataset.tgt is None:
        raise AggdecError(f"{args.gen_subset} of {args.data} has no target side to compare with")
    numbers = range(len(subject.sentences))
    sources = [_words(task.source_dictionary, sentence) for sentence in subject.sentences]
    references = [_words(task.target_dictionary, dataset.tgt[number].tolist()) for number in numbers]
    text = read_text_lines(args.text_reference) if args.text_reference else []
    gold = read_m2(args.m2) if args.m2 else []
    for path, lines in ((args.text_reference, text), (args.m2, gold)):
        if path is not None and len(lines) != len(dataset):
            raise AggdecError(f"{path} has {len(lines)} sentences, {args.gen_subset} of {args.data} has {len(dataset)}")
    gold = gold[: len(numbers)]
    if gold:
        check_sources(sources, gold, Path(args.data) / args.gen_subset, args.m2)
    running = [text[: len(numbers)]] if text else []
    return subject, ReferenceSet(sources, [references], running, task.languages[1], gold), task.target_dictionary


def _words(dictionary: Any, tokens: Sequence[int]) -> list[str]:
    """The words of token numbers, with subwords joined and without EOS."""
    return str(dictionary.string(torch.tensor(tokens), bpe_symbol="subword_nmt")).split()


def _conditions(args: Any, subject: Subject, test: ReferenceSet) -> dict[str, Any]:
    """The conditions that must stay the same for measurements to be comparable; of files, their contents' SHA-256."""
    files = [*args.path.split(":"), args.drafter_path]
    return {
        "models": {path: file_sha256(Path(path)) for path in files},
        "data": f"{args.gen_subset} of {args.data}",
        "sentences": len(subject.sentences),
        "texts": sha256(repr(test).encode()).hexdigest(),
        "metric": args.metric,
        "beam": args.beam,
        "batch_size": args.batch_size,
        "repeats": args.repeats,
        "device": subject.device,
        "precision": subject.precision,
        "threads": torch.get_num_threads(),
        "machine": machine(),
    }
