"""Scores several outputs of one test set, for a printed table and for a JSON record."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.evaluation.metrics import Metric, Settings, choose_metrics
from fairseq_aggdec.lab.evaluation.official import OfficialScorer
from fairseq_aggdec.lab.evaluation.reference_set import ReferenceSet, characters, read_outputs, read_reference_set
from fairseq_aggdec.lab.grid import TERMINAL, text_table


@dataclass
class Row:
    """Scores of one output in percent, by the name of the column."""

    name: str
    sentences: int
    scores: dict[str, float]
    official: dict[str, float] = field(default_factory=dict)


@dataclass
class ScoreTable:
    """A table of scores; each output is scored when it is added."""

    name: str
    test: ReferenceSet
    metrics: Mapping[str, Metric]
    official: Mapping[str, OfficialScorer] = field(default_factory=dict)
    """official scorers by metric"""
    settings: Settings = field(default_factory=Settings)
    rows: list[Row] = field(default_factory=list)
    _scored: list[tuple[list[int], list[list[str]], Row]] = field(default_factory=list, init=False, repr=False)

    def add(self, name: str, outputs: Mapping[int, Sequence[str]]) -> None:
        """Scores an output and adds a row.

        An output that equals an earlier one takes over its scores: lossless modes have equal outputs, and some metrics
        are slow.

        Args:
            name: name of the row.
            outputs: tokens by sentence number; missing sentences are left out of the test set too.
        """
        numbers = sorted(outputs)
        lines = [list(outputs[number]) for number in numbers]
        for *known, row in self._scored:
            if known == [numbers, lines]:
                self.rows.append(dataclasses.replace(row, name=name))
                return
        test = self.test.only(numbers)
        row = Row(name, len(lines), {})
        for key, metric in self.metrics.items():
            row.scores |= dict(zip(metric.columns, map(float, metric.score(test, lines)), strict=True))
            if key in self.official:
                scores = self.official[key].score(test, lines, self.settings)
                row.official |= dict(zip(metric.columns, scores, strict=True))
        self.rows.append(row)
        self._scored.append((numbers, lines, row))

    def text(self) -> str:
        """The table for a terminal; a row that lacks sentences says how many it has."""
        size = self.test.size
        rows = []
        for row in self.rows:
            label = row.name if row.sentences == size else f"{row.name} ({row.sentences} sentences)"
            scores = row.scores | _named_official(row.official)
            rows.append([label, *(f"{score:.2f}" for score in scores.values())])
        headers = [f"{self.name} ({size})"]
        if self.rows:
            headers += (self.rows[0].scores | _named_official(self.rows[0].official)).keys()
        return text_table(headers, rows, TERMINAL, numbers=True)

    def record(self) -> dict[str, Any]:
        """The table as JSON, with the settings and versions of the scorers."""
        return {
            "test_set": self.name,
            "sentences": self.test.size,
            "references": len(self.test.references) or len(self.test.text),
            "metrics": list(self.metrics),
            "settings": dataclasses.asdict(self.settings),
            "versions": {package: _version(package) for package in ("fairseq-aggdec", "sacrebleu", "rouge-score")},
            "official": {metric: list(scorer.command) for metric, scorer in self.official.items()},
            "rows": [dataclasses.asdict(row) for row in self.rows],
        }


def _named_official(scores: Mapping[str, float]) -> dict[str, float]:
    return {f"{column}, official": score for column, score in scores.items()}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def files_table(args: argparse.Namespace) -> ScoreTable:
    """The table of `aggdec score files`.

    Raises:
        AggdecError: files are empty or do not belong together, or a metric or scorer cannot be used.
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
    if names:  # the metrics of official scorers are added, to stand beside them
        metrics = choose_metrics(list(dict.fromkeys([*names, *(scorer.metric for scorer in scorers)])), test, settings)
    elif unfit := [scorer.metric for scorer in scorers if scorer.metric not in metrics]:
        choose_metrics(unfit, test, settings)  # raises an error that names the missing input
    table = ScoreTable("outputs", test, metrics, {scorer.metric: scorer for scorer in scorers}, settings)
    for path, lines in outputs.items():
        table.add(str(path), lines)
    return table
