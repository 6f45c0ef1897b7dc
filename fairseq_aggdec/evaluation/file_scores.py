"""Scores of files against what is given: references, sources, gold edits."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.evaluation.gleu import corpus_gleu
from fairseq_aggdec.evaluation.metrics import Settings, choose_metrics, mean_edit_ratio
from fairseq_aggdec.evaluation.official import OfficialScorer
from fairseq_aggdec.evaluation.reference_set import characters, read_outputs, read_reference_set, read_tokens
from fairseq_aggdec.evaluation.score_table import ScoreTable


def files_table(args: argparse.Namespace) -> ScoreTable:
    """The table of `aggdec score files`.

    Raises:
        AggdecError: files are empty or do not belong together, or a metric or scorer cannot be had.
    """
    if args.characters and args.text_references:
        raise AggdecError("--characters: splits tokens, but --text-references are running text; leave one out")
    settings = Settings(args.max_unchanged_words, args.beta, args.draws, args.stem)
    test = read_reference_set(args.sources, args.references, args.text_references, args.language, args.m2)
    outputs = {path: read_outputs(path, test.size) for path in args.outputs}
    if args.characters:
        test = test.in_characters()
        for path, lines in outputs.items():
            outputs[path] = dict(zip(lines, characters(list(lines.values())), strict=True))
    names = [name.strip() for name in args.metrics.split(",") if name.strip()]
    scorers = [OfficialScorer.of(command) for command in args.official]
    metrics = choose_metrics(names, test, settings)
    if names:  # an official scorer needs our number beside it
        metrics = choose_metrics(list(dict.fromkeys([*names, *(scorer.metric for scorer in scorers)])), test, settings)
    elif unfit := [scorer.metric for scorer in scorers if scorer.metric not in metrics]:
        choose_metrics(unfit, test, settings)  # says what it needs
    table = ScoreTable("outputs", test, metrics, {scorer.metric: scorer for scorer in scorers}, settings)
    for path, lines in outputs.items():
        table.add(str(path), lines)
    return table


def gleu_of_files(source: Path, output: Path, references: Sequence[Path], draws: int) -> float:
    """GLEU of a tokenised file, times 100.

    Raises:
        AggdecError: a file is empty, or has another number of lines.
    """
    return 100 * corpus_gleu(*_beside(source, output), [read_tokens(path) for path in references], draws)


def edit_ratio_of_files(source: Path, output: Path) -> float:
    """The mean edit ratio of a tokenised file, in percent.

    Raises:
        AggdecError: a file is empty, or has another number of lines.
    """
    return 100 * mean_edit_ratio(*_beside(source, output))


def _beside(source: Path, output: Path) -> tuple[list[list[str]], list[list[str]]]:
    sources, outputs = read_tokens(source), read_tokens(output)
    if len(sources) != len(outputs):
        raise AggdecError(f"{source} has {len(sources)} lines, {output} has {len(outputs)}")
    return sources, outputs
