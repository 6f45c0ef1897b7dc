"""What an experiment has decoded and measured, read from its work folder when a table asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from experiments.experiment import read_experiment
from experiments.scores import ExperimentScores
from experiments.training_log import Validation, read_validations
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import read_text_lines
from fairseq_aggdec.lab.bench.record import Record, Run, load_record
from fairseq_aggdec.structured_files import parse

STATS, COMMAND = "stats.jsonl", "command.txt"
"""files of scripts/decode.sh beside an output: that of --decoding-stats, and the command of fairseq-generate"""


@dataclass
class Decoding:
    """Counters of one decoded test set (`--decoding-stats`), summed over its sentences."""

    sentences: int
    iterations: int
    tokens: int
    """output tokens, EOS counted"""
    seconds: float | None = None
    """seconds for all sentences; None unless each was decoded alone"""
    command: str = ""

    @property
    def mean_iterations(self) -> float | None:
        """Mean iterations of a sentence; None if they were not counted."""
        return self.iterations / self.sentences if self.iterations else None

    @property
    def mean_accepted_block(self) -> float | None:
        """As of a `Run`; None if iterations were not counted."""
        return (
            (self.tokens - self.sentences) / max(1, self.iterations - self.sentences)
            if self.iterations
            else None
        )

    @property
    def mean_accepted_tokens(self) -> float | None:
        """Mean committed tokens of an iteration, the verifier's own included; None if they were not counted."""
        return self.tokens / self.iterations if self.iterations else None


def read_decoding(path: Path) -> Decoding:
    """Read a file of --decoding-stats and add up its counters.

    Raises:
        AggdecError: the file has another format or is not complete.
    """
    try:
        sentences = [
            parse(line, dict[str, Any], str(path), "decode again")
            for line in read_text_lines(path)
        ]
        iterations = sum(entry["iterations"] for entry in sentences)
        tokens = sum(entry["output_length"] + 1 for entry in sentences)
        times = [entry["seconds"] for entry in sentences]
    except (KeyError, TypeError) as error:
        raise AggdecError(
            f"{path}: not a whole file of --decoding-stats ({error!r}); decode again"
        ) from error
    command = path.parent / COMMAND
    told = command.read_text(encoding="utf-8").strip() if command.is_file() else ""
    return Decoding(
        len(sentences),
        iterations,
        tokens,
        None if None in times else round(sum(times), 6),
        told,
    )


@dataclass
class Results:
    """The results of one experiment; a missing file is None, as its stage has not run."""

    config: Path
    """the experiment's folder in configs/"""
    work: Path
    """its work folder"""
    data: Path
    """folder of the data sets, which has the M2 files"""
    metrics: tuple[str, ...] = ()
    """metrics of aggdec score beside those of prepare.py"""
    ending: str = ""
    """of the names of the outputs and records: `-fp16` for those in half precision"""
    used: list[tuple[Place, Measure]] = field(default_factory=list)
    """where the numbers that were found come from"""

    def __hash__(self) -> int:
        return id(self)

    def at(self, label: str = "", **fields: Any) -> Place:
        """The place of a decoded output and of the mode of the same name."""
        return Place(self, label, **fields)

    @cached_property
    def scores(self) -> ExperimentScores | None:
        """The scorer of the decoded outputs; None for an experiment without metrics, as one of images."""
        settings = self.config / "prepare.py"
        if not settings.is_file():
            return None
        experiment, _ = read_experiment(settings)
        if not experiment.score:
            return None
        return ExperimentScores(experiment, self.work, self.data, self.metrics)

    def score(self, subset: str, label: str) -> Mapping[str, float]:
        """The scores of a decoded output by their columns; empty where it is missing or not finished."""
        if self.scores is None or not self.is_whole(
            self.work / "decode" / subset / f"{label}{self.ending}"
        ):
            return {}
        return self.scores.of(subset, f"{label}{self.ending}")

    def test_set(self, subset: str) -> tuple[str, int] | None:
        """Name and number of sentences of a test set that was decoded; `subset` is fairseq's name of it."""
        if self.scores is None or not any(
            map(self.is_whole, self.work.glob(f"decode/{subset}/*"))
        ):
            return None
        return self.scores.size(subset)

    @cache  # noqa: B019
    def decoding(self, subset: str, label: str) -> Decoding | None:
        """The counters of a decoded output."""
        path = self.work / "decode" / subset / f"{label}{self.ending}" / STATS
        return (
            read_decoding(path)
            if path.is_file() and self.is_whole(path.parent)
            else None
        )

    @cache  # noqa: B019
    def record(self, name: str) -> Record | None:
        """What aggdec bench wrote to NAME.json in the work folder."""
        path = self.work / f"{name}{self.ending}.json"
        return load_record(path) if path.is_file() else None

    @cache  # noqa: B019
    def is_whole(self, output: Path) -> bool:
        """Whether fairseq-generate has finished in this folder; it may have skipped sentences that are too long."""
        files = output.glob("generate-*.txt")
        return any(
            line.startswith("Generate ")
            for path in files
            for line in read_text_lines(path)
        )

    def run(self, name: str, mode: str) -> Run | None:
        """A mode of a record at batch size 1. In its name `-` may stand for `:`, as in names of folders."""
        record = self.record(name)
        runs = record.at(1) if record is not None else []
        return next(
            (
                run
                for run in runs
                if run.mode.replace(":", "-") == mode.replace(":", "-")
            ),
            None,
        )

    @cache  # noqa: B019
    def training(self, folder: str) -> list[Validation] | None:
        """The validations of a drafter's training in a folder of the work folder."""
        log = self.work / folder / "train/hydra_train.log"
        return read_validations(log) if log.is_file() else None

    def sizes(self, pattern: str) -> list[str]:
        """What `*` stands for in the names of records such as `blocks/regular-*`, numbers in their order."""
        before, _, after = f"{self.work / pattern}.json".partition("*")
        found = (
            str(path)[len(before) : -len(after)]
            for path in self.work.glob(f"{pattern}.json")
        )
        return sorted(
            found,
            key=lambda name: (
                not name.isdigit(),
                int(name) if name.isdigit() else 0,
                name,
            ),
        )

    def relative(self, command: str) -> str:
        """A command with paths relative to the checkout, and `work/` for the folder of the work folders."""
        checkout = self.config.resolve().parents[1]
        for folder, name in (
            (self.work.resolve().parent, "work/"),
            (self.work.absolute().parent, "work/"),
        ):
            command = command.replace(f"{folder}/", name)
        return command.replace(f"{checkout}/", "")


@dataclass(frozen=True)
class Place:
    """The decoded output and the timed mode of a table's row. No measure needs all fields."""

    results: Results
    label: str = ""
    """label of the decoded output"""
    set: str = "test"
    """fairseq's name of the test set"""
    record: str = "bench/bench"
    """file of aggdec bench in the work folder, without suffix"""
    mode: str = ""
    """mode in that file; empty for the label"""
    over: str = "beam5"
    """baseline of a speed-up: a mode, or for `decoding_speed_up` a label"""
    over_record: str = ""
    """file with the baseline; empty for `record`"""
    training: str = ""
    """folder of a drafter's training in the work folder"""
    beside: tuple[str, ...] = ()
    """the trainings in the same table"""

    def at(self, label: str | None = None, **fields: Any) -> Place:
        """The same place but for these fields."""
        return replace(
            self, **(fields if label is None else {**fields, "label": label})
        )

    @property
    def run(self) -> Run | None:
        """The timed mode."""
        return self.results.run(self.record, self.mode or self.label)

    @property
    def baseline(self) -> Run | None:
        """The mode that a speed-up is over."""
        return self.results.run(self.over_record or self.record, self.over)

    @property
    def decoding(self) -> Decoding | None:
        """The counters of the decoded output."""
        return self.results.decoding(self.set, self.label)

    def get(self, measure: Measure) -> float | None:
        """A number of this place, noted as used for the head of the page; None if it was not measured."""
        number = measure(self)
        if number is not None:
            self.results.used.append((self, measure))
        return number

    def row(self, columns: Mapping[str, Measure]) -> Row:
        """The numbers of a row, by column."""
        row = Row({column: self.get(measure) for column, measure in columns.items()})
        row.place, row.columns = self, columns
        return row


class Row(dict[str, float | None]):
    """The numbers of a row by column, and where they come from."""

    place: Place
    columns: Mapping[str, Measure]


Measure = Callable[[Place], float | None]
"""looks up a number; None if it was not measured"""
