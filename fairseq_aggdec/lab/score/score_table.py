"""Scores several outputs of one test set, for a printed table and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from fairseq_aggdec.lab.grid import TERMINAL, text_table
from fairseq_aggdec.lab.score.metrics import Metric, Settings
from fairseq_aggdec.lab.score.reference_set import ReferenceSet


@dataclasses.dataclass(frozen=True)
class Row:
    """Scores of one output in percent, by the name of the column."""

    sentences: int
    scores: dict[str, float]


@dataclasses.dataclass
class ScoreTable:
    """A table of scores; each output is scored when it is added."""

    name: str
    test: ReferenceSet
    metrics: Mapping[str, Metric]
    settings: Settings = dataclasses.field(default_factory=Settings)
    rows: dict[str, Row] = dataclasses.field(default_factory=dict)
    _scored: list[tuple[list[int], list[list[str]], Row]] = dataclasses.field(default_factory=list, repr=False)

    def add(self, name: str, outputs: Mapping[int, Sequence[str]]) -> None:
        """Score an output and add a row.

        An output that equals an earlier one takes over its scores: lossless modes have equal outputs, and some metrics
        are slow.

        Args:
            name: name of the row.
            outputs: tokens by sentence number; missing sentences are left out of the test set too.
        """
        numbers = sorted(outputs)
        lines = [list(outputs[number]) for number in numbers]
        known = next((row for *output, row in self._scored if output == [numbers, lines]), None)
        if known is None:
            test = self.test.only(numbers)
            scores: dict[str, float] = {}
            for metric in self.metrics.values():
                scores |= dict(zip(metric.columns, map(float, metric.score(test, lines)), strict=True))
            known = Row(len(lines), scores)
            self._scored.append((numbers, lines, known))
        self.rows[name] = known

    def text(self) -> str:
        """The table for a terminal and what its columns are; a row that lacks sentences says how many it has."""
        size, columns = self.test.size, [column for metric in self.metrics.values() for column in metric.columns]
        rows = []
        for name, row in self.rows.items():
            label = name if row.sentences == size else f"{name} ({row.sentences} sentences)"
            rows.append([label, *(f"{row.scores[column]:.2f}" for column in columns)])
        table = text_table([f"{self.name} ({size})", *columns], rows, TERMINAL, numbers=True)
        said = [f"{metric.columns[0]}: {metric.means}" for metric in self.metrics.values() if metric.means]
        return "\n".join([table, *([""] if said else []), *said])

    def record(self) -> dict[str, Any]:
        """The table as JSON, with the settings and versions of the scorers."""
        return {
            "test_set": self.name,
            "sentences": self.test.size,
            "references": len(self.test.references) or len(self.test.text),
            "metrics": {name: metric.means for name, metric in self.metrics.items()},
            "settings": dataclasses.asdict(self.settings),
            "versions": {package: version(package) for package in ("fairseq-aggdec", "sacrebleu", "rouge-score")},
            "rows": [{"name": name, **dataclasses.asdict(row)} for name, row in self.rows.items()],
        }
