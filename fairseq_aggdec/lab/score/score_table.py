"""Scores several outputs of one test set, for a printed table and as JSON: `aggdec score`."""

import dataclasses
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.grid import TERMINAL, text_table
from fairseq_aggdec.lab.score.metrics import MEANS, Metric, choose_metrics
from fairseq_aggdec.lab.score.reference_set import (
    ReferenceSet,
    characters,
    read_outputs,
    read_reference_set,
)


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
    rows: dict[str, Row] = dataclasses.field(default_factory=dict)
    _outputs: dict[str, Mapping[int, Sequence[str]]] = dataclasses.field(
        default_factory=dict, repr=False
    )

    def add(self, name: str, outputs: Mapping[int, Sequence[str]]) -> None:
        """Score an output and add a row.

        An output that equals an earlier one takes over its scores: lossless modes have equal outputs, and some metrics
        are slow. `outputs`: tokens by sentence number; missing sentences are left out of the test set too.
        """
        equal = next(
            (other for other, lines in self._outputs.items() if lines == outputs), None
        )
        self._outputs[name] = outputs
        if equal is not None:
            self.rows[name] = self.rows[equal]
            return
        numbers = sorted(outputs)
        test, lines = (
            self.test.only(numbers),
            [list(outputs[number]) for number in numbers],
        )
        scores: dict[str, float] = {}
        for metric in self.metrics.values():
            scores |= dict(
                zip(metric.columns, map(float, metric.score(test, lines)), strict=True)
            )
        self.rows[name] = Row(len(lines), scores)

    def text(self) -> str:
        """The table for a terminal and what its columns are; a row that lacks sentences says how many it has."""
        size, columns = (
            self.test.size,
            [column for metric in self.metrics.values() for column in metric.columns],
        )
        rows = []
        for name, row in self.rows.items():
            label = (
                name if row.sentences == size else f"{name} ({row.sentences} sentences)"
            )
            rows.append([label, *(f"{row.scores[column]:.2f}" for column in columns)])
        table = text_table(
            [f"{self.name} ({size})", *columns], rows, TERMINAL, numbers=True
        )
        said = [
            f"{metric.columns[0]}: {MEANS[name]}"
            for name, metric in self.metrics.items()
            if name in MEANS
        ]
        return "\n".join([table, *([""] if said else []), *said])

    def record(self) -> dict[str, Any]:
        """The table as JSON, with the versions of the scorers."""
        return {
            "test_set": self.name,
            "sentences": self.test.size,
            "references": len(self.test.references) or len(self.test.text),
            "metrics": {name: MEANS.get(name, "") for name in self.metrics},
            "versions": {
                package: version(package)
                for package in ("fairseq-aggdec", "sacrebleu", "rouge-score")
            },
            "rows": [
                {"name": name, **dataclasses.asdict(row)}
                for name, row in self.rows.items()
            ],
        }


def files_table(args: Any) -> ScoreTable:
    """Score files of outputs; `args` are the options of `aggdec score files`.

    Raises:
        AggdecError: files are empty or do not belong together, or a metric cannot be used.
    """
    if args.characters and args.text_references:
        raise AggdecError(
            "--characters: splits tokens, but --text-references are running text; leave one out"
        )
    test = read_reference_set(
        args.sources, args.references, args.text_references, args.language, args.m2
    )
    outputs = {path: read_outputs(path, test.size) for path in args.outputs}
    if args.characters:
        test = test.in_characters()
        for path, lines in outputs.items():
            outputs[path] = dict(
                zip(lines, characters(list(lines.values())), strict=True)
            )
    names = [name.strip() for name in (args.metrics or "").split(",") if name.strip()]
    table = ScoreTable("outputs", test, choose_metrics(names, test, args.stem))
    for path, lines in outputs.items():
        table.add(str(path), lines)
    return table
