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
        self._config = config
        self._work = work
        self._data = data
        self._metrics = list(dict.fromkeys([*config.score, *further]))
        self.sets: dict[str, TestSet] = {
            "valid": TestSet("valid"),
            "test": TestSet("test"),
        }
        """the test sets by fairseq's names `valid`, `test`, `test1`, ..."""
        for number, item in enumerate(config.test_sets, start=1):
            self.sets[f"test{number}"] = item

    def references(self, subset: str) -> ReferenceSet:
        """A test set with its references.

        Raises:
            AggdecError: a file is empty, or files do not belong together.
        """
        item = self.sets[subset]
        tokens = self._work / "tok"
        source_side, target_side = self._config.sides
        files: list[Path] = []
        if item.has_references:
            files = sorted(tokens.glob(f"{item.name}.ref*")) or [
                tokens / f"{item.name}.{target_side}"
            ]
        m2 = self._config.m2.get(subset)
        return read_reference_set(
            tokens / f"{item.name}.{source_side}",
            files,
            text=[self._work / "text" / file.name for file in files],
            # the side tells it where text came tokenised
            language=self._config.language_of(target_side) or target_side,
            m2=self._data / m2 if m2 else None,
        )

    def size(self, subset: str, labels: Sequence[str]) -> tuple[str, int]:
        """Name of a test set, and the most sentences that one of its outputs has: fewer than it under DECODE_LIMIT."""
        sizes = (len(self._outputs(subset, label)) for label in labels)
        return self.sets[subset].name, max(sizes)

    def of(self, subset: str, label: str) -> Mapping[str, float]:
        """The scores of one decoded output, by column."""
        table = self._table(subset)
        if label not in table.rows:
            table.add(label, self._outputs(subset, label))
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
            decoded = self._work / "decode" / subset
            files = sorted(decoded.glob(f"*/generate-{subset}.txt"))
            if not files:
                continue
            table = self._table(subset)
            if "edit-ratio" in self._config.score:  # an editing task
                table.add("source, unchanged", dict(enumerate(table.test.sources)))
            for label in (file.parent.name for file in files):
                self.of(subset, label)
                if written:
                    file = written / item.name / f"{label}.txt"
                    _write(self._outputs(subset, label), table.test.size, file)
            tables.append(table)
        if not tables:
            raise AggdecError(
                f"nothing is decoded in {self._work / 'decode'}: run scripts/decode.sh first"
            )
        return tables

    def _outputs(self, subset: str, label: str) -> dict[int, list[str]]:
        file = self._work / "decode" / subset / label / f"generate-{subset}.txt"
        return read_outputs(file, self._table(subset).test.size, self._join)

    @cache  # noqa: B019
    def _table(self, subset: str) -> ScoreTable:
        test = self.references(subset)
        metrics = self._metrics
        # then what compares outputs with sources is left
        if not self.sets[subset].has_references:
            metrics = [
                name
                for name, metric in all_metrics().items()
                if name in metrics and not metric.missing(test)
            ]
        return ScoreTable(self.sets[subset].name, test, choose_metrics(metrics, test))

    @cached_property
    def _join(self) -> Callable[[str], str]:
        """The function that joins the experiment's subwords to text."""
        if not self._config.gpt2:
            return join_subwords
        folder = self._work / "data-bin"
        encoder = subwords.gpt2(*(folder / name for name in subwords.GPT2_FILES))
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
