"""Runs `aggdec bench`: from its options to a record."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from tqdm import tqdm

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import read_text_lines
from fairseq_aggdec.generation.edit_ratio import edit_ratio
from fairseq_aggdec.generation.modes import IAD
from fairseq_aggdec.lab.bench.memory import peak_memory
from fairseq_aggdec.lab.bench.modes import ModeSpec
from fairseq_aggdec.lab.bench.module_times import profile
from fairseq_aggdec.lab.bench.record import (
    BASELINES,
    Record,
    Run,
    by_edit_ratio,
    counted,
    run_of,
)
from fairseq_aggdec.lab.bench.rounds import ModeResult, compare
from fairseq_aggdec.lab.bench.runs import Runs
from fairseq_aggdec.lab.bench.subject import Subject, chosen_subject
from fairseq_aggdec.lab.score.bleu import detokenised_bleu


def measure(args: Any, modes: Sequence[ModeSpec], command: str) -> Record:
    """Measure what the options of `aggdec bench` ask for, and print differences of lossless modes on stderr.

    `args` are already checked; `modes` are all modes, those of other programs included; `command` is the command line.

    Raises:
        AggdecError: files or options cannot be used.
    """
    modes = [mode.having(copies=args.copies) for mode in modes]
    with chosen_subject(args, modes) as subject:
        references = _references(args.reference, subject) if args.reference else []
        record = Record(
            subject.title,
            command,
            sentences=len(subject.sentences),
            source_tokens=sum(map(len, subject.sentences)),
            search=dict(subject.search),
        )
        with Runs(subject) as runs:
            for size in args.batch_sizes:
                measured, ratios = _measure(runs, modes, size, args, references)
                record.runs += measured
                record.edit_ratio = round(mean(ratios), 4)
        if args.memory:
            _measure_memory(record, subject, modes, args.batch_sizes)
    return record


def _references(path: Path, subject: Subject) -> list[str]:
    """A reference for each sentence of the whole split."""
    lines = read_text_lines(path)
    if len(lines) != subject.of_split:
        raise AggdecError(
            f"{path} has {len(lines)} lines, {subject.name} has {subject.of_split} sentences"
        )
    return lines


def _measure(
    runs: Runs,
    modes: Sequence[ModeSpec],
    batch_size: int,
    args: Any,
    references: Sequence[str],
) -> tuple[list[Run], list[float]]:
    """Time all modes at one batch size, and compare the lossless ones with their references.

    `references`: of the split, for BLEU. Returns a run for each mode, and the edit ratio of each sentence.
    """
    results = compare([runs.runner(mode, batch_size) for mode in modes], args.repeats)
    # a long run that is stopped has not been for nothing
    times = ", ".join(
        f"{result.mode.name} {result.seconds:.3g} s" for result in results
    )
    print(f"batch size {batch_size}: {times}", file=sys.stderr)
    # what lossless modes are compared with, where it is not timed
    untimed = [runs.runner(mode, batch_size) for mode in runs.references.missing(modes)]
    decoded = [*results, *compare(untimed, repeats=1)]
    runs.note_differences(decoded)
    ratios = _edit_ratios(runs, results, batch_size)
    by_name = {result.mode.name: result for result in results}
    baseline = next((by_name[name] for name in BASELINES if name in by_name), None)
    measured = []
    for result in results:
        mode = result.mode
        # `greedy` in this precision, or in another one where that was not decoded
        greedy = min(
            (other for other in decoded if other.mode.is_greedy),
            key=lambda other: other.mode.precision != mode.precision,
            default=None,
        )
        run = run_of(result, greedy)
        run.batch_size = batch_size  # the result has that of its largest batch
        if args.profile and run.implementation == "fairseq_aggdec":
            run.times.modules = profile(result.runner)
        if references:
            run.counts.bleu = _bleu(runs, result, references)
        # sentence by sentence
        is_beside = greedy in results and run.counts.compared_with == mode.precision
        if mode.row.copies and greedy and is_beside:
            speed_ups = result.speed_ups_over(greedy)
            run.times.speed_up_by_edit_ratio = by_edit_ratio(ratios, speed_ups)
        if mode.row.drafter and baseline and batch_size == 1:
            run.times.speed_ups = counted(result.speed_ups_over(baseline))
        measured.append(run)
    return measured, ratios


def _measure_memory(
    record: Record,
    subject: Subject,
    modes: Sequence[ModeSpec],
    batch_sizes: Sequence[int],
) -> None:
    """Add the peak memory of each mode to its runs."""
    for mode in tqdm(modes, desc="memory", unit="mode", disable=None, leave=False):
        peaks = peak_memory(subject, mode, batch_sizes, torch.get_num_threads())
        of_mode = (run for run in record.runs if run.mode == mode.name)
        for run, peak in zip(of_mode, peaks, strict=True):
            run.counts.host_bytes, run.counts.device_bytes = peak


def _bleu(runs: Runs, result: ModeResult, references: Sequence[str]) -> float:
    task = runs.task
    outputs = sorted(result.outputs.items())
    lines = [
        task.target_dictionary.string(torch.tensor(output.tokens), "subword_nmt")
        for _, output in outputs
    ]
    return detokenised_bleu(
        lines, [[references[sentence] for sentence, _ in outputs]], task.languages[1]
    )


def _edit_ratios(
    runs: Runs, results: Sequence[ModeResult], batch_size: int
) -> list[float]:
    """Edit ratio of each sentence: from the text that `iad` copies from to the output of `greedy` or the first mode."""
    result = next((result for result in results if result.mode.is_greedy), results[0])
    source = runs.task.source_dictionary.symbols
    target = runs.task.target_dictionary.symbols
    iad = replace(ModeSpec.parse(IAD), precision=result.mode.precision)
    texts = runs.oracle_texts(iad, batch_size) or dict(
        enumerate(runs.subject.sentences)
    )
    return [
        edit_ratio(
            [source[token] for token in text[:-1]],
            [target[token] for token in result.outputs[sentence].tokens[:-1]],
        )
        for sentence, text in sorted(texts.items())
    ]
