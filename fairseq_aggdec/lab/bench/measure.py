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
from fairseq_aggdec.lab.bench import machine
from fairseq_aggdec.lab.bench.memory import peak_memory
from fairseq_aggdec.lab.bench.modes import Mode
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


def measure(args: Any, modes: Sequence[Mode], command: str) -> Record:
    """Measure what the options of `aggdec bench` ask for, and print differences of lossless modes on stderr.

    `args` are already checked; `modes` are all modes, those of other programs included; `command` is the command line.

    Raises:
        AggdecError: files or options cannot be used.
    """
    with chosen_subject(args, modes) as chosen:
        subject = replace(chosen, copies=args.copies)
        references = _references(args.reference, subject) if args.reference else []
        measured: list[Run] = []
        ratios: list[float] = []
        with Runs(subject) as runs:
            for size in args.batch_sizes:
                found, ratios = _measure(
                    runs, modes, size, args.repeats, args.profile, references
                )
                measured += found
        for mode in tqdm(
            modes if args.memory else (),
            desc="memory",
            unit="mode",
            disable=None,
            leave=False,
        ):
            peaks = peak_memory(
                subject, mode, args.batch_sizes, torch.get_num_threads()
            )
            for run, peak in zip(
                (run for run in measured if run.mode == mode.name), peaks, strict=True
            ):
                run.host_bytes, run.device_bytes = peak
    return Record(
        title=subject.title,
        command=command,
        date=machine.now(),
        commit=machine.commit(),
        machine=machine.machine(),
        sentences=len(subject.sentences),
        source_tokens=sum(map(len, subject.sentences)),
        edit_ratio=round(mean(ratios), 4),
        runs=measured,
        search=dict(subject.search),
    )


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
    modes: Sequence[Mode],
    batch_size: int,
    repeats: int,
    profiled: bool,
    references: Sequence[str],
) -> tuple[list[Run], list[float]]:
    """Time all modes at one batch size, and compare the lossless ones with their references.

    `profiled`: whether to time the modules of this plugin's modes as well, in another round; `references`: of the
    split, for BLEU. Returns a run for each mode, and the edit ratio of each sentence.
    """
    runners = [runs.runner(mode, batch_size) for mode in modes]
    results = compare(runners, repeats)
    # a long run that is stopped has not been for nothing
    times = ", ".join(
        f"{result.mode.name} {result.seconds:.3g} s" for result in results
    )
    print(f"batch size {batch_size}: {times}", file=sys.stderr)
    untimed = [runs.runner(mode, batch_size) for mode in runs.references.missing(modes)]
    decoded = [*results, *compare(untimed, repeats=1)]
    different = runs.differences([*runners, *untimed], decoded)
    ratios = _edit_ratios(runs, results, batch_size)
    baseline = next(
        (
            result
            for name in BASELINES
            for result in results
            if result.mode.name == name
        ),
        None,
    )
    found = []
    for runner, result in zip(runners, results, strict=True):
        mode, precision = result.mode, runs.precision(result.mode)
        # `greedy` in this precision, or in another one where that was not decoded
        every = [other for other in decoded if other.mode.is_greedy]
        greedy = min(
            every,
            key=lambda other: runs.precision(other.mode) != precision,
            default=None,
        )
        known = None if greedy is None else runs.precision(greedy.mode)
        run = run_of(result, precision, different.get(mode.name), greedy, known)
        run.batch_size = batch_size  # the result has that of its largest batch
        if profiled and run.implementation == "fairseq_aggdec":
            run.modules = profile(runner)
        if references:
            run.bleu = _bleu(runs, result, references)
        if mode.row.copies and greedy in results and known == precision:
            run.speed_up_by_edit_ratio = by_edit_ratio(
                ratios, result.speed_ups_over(greedy)
            )
        if mode.row.drafter and baseline is not None and batch_size == 1:
            run.speed_ups = counted(result.speed_ups_over(baseline))
        found.append(run)
    return found, ratios


def _bleu(runs: Runs, result: ModeResult, references: Sequence[str]) -> float:
    task, outputs = runs.task, result.outputs
    lines = [
        task.target_dictionary.string(torch.tensor(outputs[n].tokens), "subword_nmt")
        for n in sorted(outputs)
    ]
    return detokenised_bleu(
        lines, [[references[number] for number in sorted(outputs)]], task.languages[1]
    )


def _edit_ratios(
    runs: Runs, results: Sequence[ModeResult], batch_size: int
) -> list[float]:
    """Edit ratio of each sentence: from the text that `iad` copies from to the output of `greedy` or the first mode."""
    result = next((result for result in results if result.mode.is_greedy), results[0])
    source, target = (
        runs.task.source_dictionary.symbols,
        runs.task.target_dictionary.symbols,
    )
    return [
        edit_ratio(
            [source[token] for token in text[:-1]],
            [target[token] for token in result.outputs[n].tokens[:-1]],
        )
        for n, text in sorted(runs.copied_texts(result.mode, batch_size).items())
    ]
