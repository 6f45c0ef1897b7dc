"""Scores decoded outputs of an experiment by the metrics in its prepare.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path

from experiments import subwords
from experiments.experiment import Experiment, TestSet
from experiments.text_files import write_lines
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.score.generate_file import join_subwords
from fairseq_aggdec.lab.score.metrics import all_metrics, choose_metrics
from fairseq_aggdec.lab.score.reference_set import (
    ReferenceSet,
    read_outputs,
    read_reference_set,
)
from fairseq_aggdec.lab.score.score_table import ScoreTable


class ExperimentScores:
    """The test sets of an experiment and its decoded outputs.

    All metrics compare the tokens that the model reads and writes, except `sacrebleu`, which compares running text.

    Args:
        config: the experiment's `prepare.py`.
        work: its work folder.
        data: folder of the data sets.
        further: metrics beside those of the configuration.
    """

    def __init__(
        self, config: Experiment, work: Path, data: Path, further: Sequence[str] = ()
    ) -> None:
        self._config, self._work, self._data = config, work, data
        self._metrics = list(dict.fromkeys([*config.score, *further]))
        self._tables: dict[str, ScoreTable] = {}

    @cached_property
    def sets(self) -> dict[str, TestSet]:
        """Settings of the test sets by fairseq's names `valid`, `test`, `test1`, ...

        The M2 files of `valid` and `test` come from the field `m2`, those of others from their own entries.
        """
        sets = {
            name: TestSet(name, m2=self._config.m2.get(name))
            for name in ("valid", "test")
        }
        return sets | {
            f"test{number}": item
            for number, item in enumerate(self._config.test_sets, start=1)
        }

    def references(self, subset: str) -> ReferenceSet:
        """A test set with its references.

        Raises:
            AggdecError: a file is empty, or files do not belong together.
        """
        item, tokens, (source_side, target_side) = (
            self.sets[subset],
            self._work / "tok",
            self._config.sides,
        )
        files: list[Path] = []
        if self._has_references(subset):
            files = sorted(tokens.glob(f"{item.name}.ref*")) or [
                tokens / f"{item.name}.{target_side}"
            ]
        text = [self._work / "text" / file.name for file in files]
        # the side tells it where text came tokenised
        language = self._config.language_of(target_side) or target_side
        m2_file = self._data / item.m2 if item.m2 else None
        return read_reference_set(
            tokens / f"{item.name}.{source_side}", files, text, language, m2_file
        )

    def size(self, subset: str) -> tuple[str, int]:
        """Name of a test set, and the most sentences of it that an output has: all unless DECODE_LIMIT cut it."""
        table = self._table(subset)
        return self.sets[subset].name, max(
            (row.sentences for row in table.rows.values()), default=table.test.size
        )

    def of(self, subset: str, label: str) -> Mapping[str, float]:
        """The scores of one decoded output, by column."""
        table = self._table(subset)
        if label not in table.rows:
            file = self._work / "decode" / subset / label / f"generate-{subset}.txt"
            table.add(label, read_outputs(file, table.test.size, self._join))
        return table.rows[label].scores

    def tables(self, written: Path | None = None) -> list[ScoreTable]:
        """A table for each decoded test set, with a row for each decoding and, for editing tasks, for the source.

        Args:
            written: a folder for the outputs as they are scored, SET/DECODING.txt, one sentence a line; None for none.

        Raises:
            AggdecError: nothing is decoded, a metric is unknown, or files do not belong together.
        """
        tables = []
        for subset, item in self.sets.items():
            files = sorted(
                (self._work / "decode" / subset).glob(f"*/generate-{subset}.txt")
            )
            if not files:
                continue
            table = self._table(subset)
            if "edit-ratio" in self._config.score:  # an editing task
                table.add("source, unchanged", dict(enumerate(table.test.sources)))
            for file in files:
                self.of(subset, file.parent.name)
                if written:
                    outputs = read_outputs(file, table.test.size, self._join)
                    _write(
                        outputs,
                        table.test.size,
                        written / item.name / f"{file.parent.name}.txt",
                    )
            tables.append(table)
        if not tables:
            raise AggdecError(
                f"nothing is decoded in {self._work / 'decode'}: run scripts/decode.sh first"
            )
        return tables

    @cache  # noqa: B019
    def _table(self, subset: str) -> ScoreTable:
        test, metrics = self.references(subset), self._metrics
        # then what compares outputs with sources is left
        if not self._has_references(subset):
            metrics = [
                name
                for name, metric in all_metrics().items()
                if name in metrics and not metric.missing(test)
            ]
        return ScoreTable(self.sets[subset].name, test, choose_metrics(metrics, test))

    def _has_references(self, subset: str) -> bool:
        """Whether references are published: an entry that names a source and no references has none."""
        return self.sets[subset].has_references

    @cached_property
    def _join(self) -> Callable[[str], str]:
        """The function that joins the experiment's subwords to text."""
        if not self._config.gpt2:
            return join_subwords
        encoder = subwords.gpt2(
            self._work / "data-bin/encoder.json", self._work / "data-bin/vocab.bpe"
        )
        return lambda line: str(encoder.decode(line))


def _write(outputs: Mapping[int, list[str]], size: int, file: Path) -> None:
    """Write outputs by sentence number as lines of tokens, for a scorer outside.

    Raises:
        AggdecError: sentences are missing: line numbers would not be those of the test set.
    """
    if missing := size - len(outputs):
        raise AggdecError(
            f"{file}: {missing} of {size} sentences were not decoded; they may be too long for the model"
        )
    write_lines(file, (" ".join(outputs[number]) for number in range(size)))
