"""Runs `aggdec bench`: from its options to a record."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
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
from fairseq_aggdec.lab.bench.record import Record, Run, run_of, speed_up_by_edit_ratio
from fairseq_aggdec.lab.bench.rounds import ModeResult, compare
from fairseq_aggdec.lab.bench.runs import Runs
from fairseq_aggdec.lab.bench.search_settings import given_settings
from fairseq_aggdec.lab.bench.subject import random_subject, read_subject
from fairseq_aggdec.lab.score.bleu import detokenised_bleu
from fairseq_aggdec.lab.verify.references import GREEDY, is_same, missing_references


def measure(args: Any, modes: Sequence[Mode], command: str) -> Record:
    """Measure what the options of `aggdec bench` ask for, and print differences of lossless modes on stderr.

    Args:
        args: the options, already checked.
        modes: all modes, those of other programs included.
        command: the command line, for the record.

    Raises:
        AggdecError: files or options cannot be used.
    """
    sizes: Sequence[int] = args.batch_sizes
    with TemporaryDirectory(prefix="aggdec-bench-") as folder:
        subject = random_subject(args, modes, Path(folder)) if args.random_model else read_subject(args)[0]
        subject = replace(subject, drafts=args.drafts)
        references = read_text_lines(args.reference) if args.reference else []
        if references and len(references) != subject.of_split:
            split = f"{args.gen_subset} of {args.data}"
            raise AggdecError(f"{args.reference} has {len(references)} lines, {split} {subject.of_split} sentences")
        measured: list[Run] = []
        ratios: list[float] = []
        with Runs(subject) as runs:
            for size in sizes:
                results, found = _measure(runs, modes, size, args.repeats, args.profile)
                ratios = ratios or _edit_ratios(runs, results, size)
                for result, run in zip(results, found, strict=True):
                    if references:
                        run.bleu = _bleu(runs, result, references)
                    greedy = _greedy(results, run.precision, runs)
                    is_timed = greedy is not None and runs.precision(greedy.mode) == run.compared_with
                    if greedy is not None and is_timed and result.mode.row.copies:
                        waits = (result.sentence_latencies, greedy.sentence_latencies)
                        run.speed_up_by_edit_ratio = speed_up_by_edit_ratio(ratios, *waits)
                measured += found
        for mode in tqdm(modes if args.memory else (), desc="memory", unit="mode", disable=None, leave=False):
            peaks = peak_memory(subject, mode, sizes, torch.get_num_threads())
            for run, peak in zip((run for run in measured if run.mode == mode.name), peaks, strict=True):
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
        search=given_settings(args),
    )


def _measure(
    runs: Runs, modes: Sequence[Mode], batch_size: int, repeats: int, profiled: bool
) -> tuple[list[ModeResult], list[Run]]:
    """Time all modes at one batch size, and compare the lossless ones with their references.

    Args:
        runs: of the subject.
        modes: all modes.
        batch_size: sentences in a batch.
        repeats: number of rounds.
        profiled: whether to time the modules of this plugin's modes as well, in another round.
    """
    subject = runs.subject
    runners = [runs.runner(mode, batch_size) for mode in modes]
    results = compare(runners, repeats)
    # a long run that is stopped has not been for nothing
    times = ", ".join(f"{result.mode.name} {result.seconds:.3g} s" for result in results)
    print(f"batch size {batch_size}: {times}", file=sys.stderr)
    missing = missing_references(modes, runs.precision, subject.device, subject.block_ngrams)
    untimed = [runs.runner(mode, batch_size) for mode in missing]
    decoded = [*results, *compare(untimed, repeats=1)]
    different = runs.differences([*runners, *untimed], decoded)
    found = []
    for runner, result in zip(runners, results, strict=True):
        precision = runs.precision(result.mode)
        greedy = _greedy(decoded, precision, runs)
        known = None if greedy is None else runs.precision(greedy.mode)
        run = run_of(result, precision, different.get(result.mode.name), greedy, known)
        run.batch_size = batch_size  # the result has that of its largest batch
        if profiled and run.implementation == "fairseq_aggdec":
            run.modules = profile(runner)
        found.append(run)
    return results, found


def _greedy(results: Sequence[ModeResult], precision: str, runs: Runs) -> ModeResult | None:
    """The result of `greedy` in a precision, or in another one where that was not decoded."""
    found = [result for result in results if is_same(result.mode, GREEDY)]
    return min(found, key=lambda result: runs.precision(result.mode) != precision, default=None)


def _bleu(runs: Runs, result: ModeResult, references: Sequence[str]) -> float:
    task, outputs = runs.task, result.outputs
    lines = [task.target_dictionary.string(torch.tensor(outputs[n].tokens), "subword_nmt") for n in sorted(outputs)]
    return detokenised_bleu(lines, [[references[number] for number in sorted(outputs)]], task.languages[1])


def _edit_ratios(runs: Runs, results: Sequence[ModeResult], batch_size: int) -> list[float]:
    """Edit ratio of each sentence: from the text that `iad` copies from to the output of `greedy` or the first mode."""
    result = next((result for result in results if is_same(result.mode, GREEDY)), results[0])
    source, target = runs.task.source_dictionary.symbols, runs.task.target_dictionary.symbols
    return [
        edit_ratio([source[token] for token in text[:-1]], [target[token] for token in result.outputs[n].tokens[:-1]])
        for n, text in sorted(runs.copied_texts(result.mode, batch_size).items())
    ]
