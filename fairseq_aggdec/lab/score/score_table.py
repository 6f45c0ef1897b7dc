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
        are slow. `outputs`: tokens by sentence id; missing sentences are left out of the test set too.
        """
        for other, lines in self._outputs.items():
            if lines == outputs:
                self.rows[name] = self.rows[other]
                return
        self._outputs[name] = outputs
        sentences = sorted(outputs)
        test = self.test.only(sentences)
        tokens = [list(outputs[sentence]) for sentence in sentences]
        scores: dict[str, float] = {}
        for metric in self.metrics.values():
            values = map(float, metric.score(test, tokens))
            scores |= zip(metric.columns, values, strict=True)
        self.rows[name] = Row(len(tokens), scores)

    def text(self) -> str:
        """The table for a terminal and what its columns are; a row that lacks sentences says how many it has."""
        size = self.test.size
        columns = [
            column for metric in self.metrics.values() for column in metric.columns
        ]
        rows = []
        for name, row in self.rows.items():
            is_whole = row.sentences == size
            label = name if is_whole else f"{name} ({row.sentences} sentences)"
            rows.append([label, *(f"{row.scores[column]:.2f}" for column in columns)])
        heads = [f"{self.name} ({size})", *columns]
        table = text_table(heads, rows, TERMINAL, numbers=True)
        said = [
            f"{metric.columns[0]}: {MEANS[name]}"
            for name, metric in self.metrics.items()
            if name in MEANS
        ]
        return "\n".join([table, *[""] * bool(said), *said])

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
    names = [name.strip() for name in (args.metrics or "").split(",") if name.strip()]
    table = ScoreTable("outputs", test, choose_metrics(names, test, args.stem))
    for path, lines in outputs.items():
        if args.characters:
            lines = dict(zip(lines, characters([*lines.values()]), strict=True))
        table.add(str(path), lines)
    return table
