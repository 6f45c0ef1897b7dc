"""Runs `aggdec bench`: from its options to a record."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

import torch
from tqdm import tqdm

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import read_text_lines
from fairseq_aggdec.generation.edit_ratio import edit_ratio
from fairseq_aggdec.lab.bench import machine, random_models
from fairseq_aggdec.lab.bench.alarm import compare_with_greedy, missing_references, print_differences
from fairseq_aggdec.lab.bench.memory import peak_memory
from fairseq_aggdec.lab.bench.modes import Mode
from fairseq_aggdec.lab.bench.module_times import profile
from fairseq_aggdec.lab.bench.record import Record, Run, run_of, speed_up_by_edit_ratio
from fairseq_aggdec.lab.bench.rounds import ModeResult, compare
from fairseq_aggdec.lab.bench.search_settings import given_settings
from fairseq_aggdec.lab.bench.subject import OracleSettings, Runners, Subject, read_subject
from fairseq_aggdec.lab.score.bleu import detokenised_bleu
from fairseq_aggdec.models.sizes import SIZES

_RANDOM_SENTENCES = 16
_RANDOM_BLOCK = 25  # block size k of papers/000


def measure(args: argparse.Namespace, modes: Sequence[Mode], command: str) -> Record:
    """Measure what the options of `aggdec bench` ask for, and print differences of lossless modes on stderr.

    Args:
        args: the options, already checked.
        modes: all modes, those of other programs included.
        command: the command line, for the record.

    Raises:
        AggdecError: files or options cannot be used.
    """
    with TemporaryDirectory(prefix="aggdec-bench-") as folder:
        references: list[str] = []
        if args.random_model:
            subject = random_subject(args, modes, Path(folder))
            title = f"random {args.random_model} model, weights of {args.trained_in}"
        else:
            subject, references = _subject(args)
            title = f"{args.gen_subset} of {args.data} by {args.path}"
        subject = replace(subject, drafts=args.drafts)
        with Runners(subject) as runners:
            runs, ratios = _runs(args, modes, runners, references)
        for mode in tqdm(modes if args.memory else (), desc="memory", unit="mode", disable=None, leave=False):
            peaks = peak_memory(subject, mode, args.batch_sizes, torch.get_num_threads())
            for run, peak in zip((run for run in runs if run.mode == mode.name), peaks, strict=True):
                run.host_bytes, run.device_bytes = peak
    return Record(
        title=f"{title}, {len(subject.sentences)} sentences, {subject.device}",
        command=command,
        date=machine.now(),
        commit=machine.commit(),
        machine=machine.machine(),
        sentences=len(subject.sentences),
        source_tokens=sum(map(len, subject.sentences)),
        edit_ratio=round(mean(ratios), 4),
        runs=runs,
        search=given_settings(args),
    )


def _subject(args: argparse.Namespace) -> tuple[Subject, list[str]]:
    """The subject of the benchmark, and the lines of --reference."""
    subject, _ = read_subject(args)
    references = list(read_text_lines(args.reference)) if args.reference else []
    sentences = subject.of_split
    if references and len(references) != sentences:
        raise AggdecError(
            f"{args.reference} has {len(references)} lines, {args.gen_subset} of {args.data} {sentences} sentences"
        )
    return subject, references


def random_subject(args: argparse.Namespace, modes: Sequence[Mode], folder: Path) -> Subject:
    """Write the model of --random-model, and a drafter if a mode needs one; draw random sentences.

    Args:
        args: the options of `add_random_model_options`, and more.
        modes: all modes.
        folder: of the models, where --keep does not name one.
    """
    if args.keep:
        folder = args.keep / f"{args.random_model}-{args.trained_in}"
    blocks = any(mode.decoding in ("gad", "gad++", "nar") for mode in modes)
    steps = any(mode.decoding == "speculative" for mode in modes)
    block_size = args.block_size or _RANDOM_BLOCK
    model = random_models.write_random_model(
        folder,
        SIZES[args.random_model],
        args.drafter_layers if blocks else 0,
        block_size,
        trained_in=torch.float16 if args.trained_in == "fp16" else torch.float32,
        small_layers=args.drafter_layers if steps else 0,
    )
    return Subject(
        path=str(model.checkpoint),
        data=str(folder),
        sentences=random_models.random_sentences(args.limit or _RANDOM_SENTENCES, args.length),
        source_lang=random_models.SOURCE,
        target_lang=random_models.TARGET,
        drafter_path=None if model.drafter is None else str(model.drafter),
        small_drafter=None if model.small is None else str(model.small),
        block_size=block_size if blocks or steps else 0,
        device=args.device,
        precision=args.precision or "fp32",
        generation={"min_len": args.length, "max_len_a": 0, "max_len_b": args.length},
        oracle=OracleSettings(args.edit_ratio, args.accepted),
        keep=str(folder),
    )


def _runs(
    args: argparse.Namespace, modes: Sequence[Mode], runners: Runners, references: Sequence[str]
) -> tuple[list[Run], list[float]]:
    """All modes at all batch sizes, and the edit ratio of each sentence."""
    runs: list[Run] = []
    ratios: list[float] = []
    missing = missing_references(modes, runners.precision)
    for batch_size in args.batch_sizes:
        made = [runners.make(mode, batch_size) for mode in modes]
        results = compare(made, args.repeats)
        # a long run that is stopped has not been for nothing
        times = ", ".join(f"{result.mode.name} {result.seconds:.3g} s" for result in results)
        print(f"batch size {batch_size}: {times}", file=sys.stderr)
        untimed = [runners.make(mode, batch_size) for mode in missing]
        decoded = [*results, *compare(untimed, repeats=1)]
        compared = compare_with_greedy([*made, *untimed], decoded, runners.precision, args.block_ngrams)
        print_differences(compared, runners.any_task().target_dictionary.symbols)
        ratios = ratios or _edit_ratios(runners, results, batch_size)
        for runner, result in zip(made, results, strict=True):
            precision = runners.precision(result.mode)
            greedy = _greedy(decoded, precision, runners)
            known = None if greedy is None else runners.precision(greedy.mode)
            run = run_of(result, precision, compared.get(result.mode.name), greedy, known)
            run.batch_size = batch_size  # the result has that of its largest batch
            if args.profile and run.implementation == "fairseq_aggdec":
                run.modules = profile(runner)
            if references:
                run.bleu = _bleu(runners, result, references)
            if greedy in results and result.mode.row.copies:  # it was timed in the same rounds
                waits = (result.sentence_latencies, greedy.sentence_latencies)
                run.speed_up_by_edit_ratio = speed_up_by_edit_ratio(ratios, *waits)
            runs.append(run)
    return runs, ratios


def _greedy(results: Sequence[ModeResult], precision: str, runners: Runners) -> ModeResult | None:
    """The result of `greedy` in a precision, or in another one where that was not decoded."""
    found = [result for result in results if result.mode.decoding == "greedy" and result.mode.peer is None]
    return min(found, key=lambda result: runners.precision(result.mode) != precision, default=None)


def _bleu(runners: Runners, result: ModeResult, references: Sequence[str]) -> float:
    task = runners.any_task()
    numbers = sorted(result.outputs)
    lines = [
        task.target_dictionary.string(torch.tensor(result.outputs[number].tokens), bpe_symbol="subword_nmt")
        for number in numbers
    ]
    return detokenised_bleu(lines, [[references[number] for number in numbers]], task.languages[1])


def _edit_ratios(runners: Runners, results: Sequence[ModeResult], batch_size: int) -> list[float]:
    """Edit ratio of each sentence: from the text that `iad` copies from to the output of `greedy` or the first mode."""
    result = next((result for result in results if result.mode.decoding == "greedy"), results[0])
    task = runners.any_task()
    source, target = task.source_dictionary.symbols, task.target_dictionary.symbols
    return [
        edit_ratio([source[token] for token in text[:-1]], [target[token] for token in result.outputs[n].tokens[:-1]])
        for n, text in sorted(runners.copied_texts(result.mode, batch_size).items())
    ]
