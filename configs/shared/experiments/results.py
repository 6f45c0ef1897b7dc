"""What an experiment has decoded and measured, read from its work folder when a table asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

from experiments.experiment import read_experiment
from experiments.scores import ExperimentScores
from experiments.training_log import Validation, read_validations
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import read_text_lines
from fairseq_aggdec.lab.bench.record import Counts, Record, Run, load_record
from fairseq_aggdec.structured_files import parse

_Value = TypeVar("_Value")


class NotMeasuredError(Exception):
    """A number was asked for that no stage has measured yet."""


def known(value: _Value | None) -> _Value:
    """The value; raises `NotMeasuredError` for None."""
    if value is None:
        raise NotMeasuredError
    return value


@dataclass
class Decoding:
    """A decoded test set, by its `--decoding-stats`."""

    counts: Counts
    seconds: float | None
    """for all sentences; None unless each was decoded alone"""
    command: str


def read_decoding(folder: Path) -> Decoding:
    """Add up the counters of an output of scripts/decode.sh, from its `stats.jsonl`.

    Raises:
        AggdecError: the file has another format or is not complete.
    """
    path = folder / "stats.jsonl"
    command = folder / "command.txt"
    try:
        sentences = [
            parse(line, dict[str, Any], str(path), "decode again")
            for line in read_text_lines(path)
        ]
        counts = Counts(
            sentences=len(sentences),
            tokens=sum(entry["output_length"] + 1 for entry in sentences),
            # none of modes that do not count them
            iterations=sum(entry["iterations"] for entry in sentences) or None,
            accepted=0,
        )
        times = [entry["seconds"] for entry in sentences]
        seconds = None if None in times else round(sum(times), 6)
    except (KeyError, TypeError) as error:
        raise AggdecError(
            f"{path}: not a whole file of --decoding-stats ({error!r}); decode again"
        ) from error
    return Decoding(
        counts,
        seconds,
        command.read_text("utf-8").strip() if command.is_file() else "",
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
    used: list[tuple[Place, str]] = field(default_factory=list)
    """the places and names of the numbers that were shown"""
    missing: list[str] = field(default_factory=list)
    """files of records that were asked for and are not there"""

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

    def output(self, subset: str, label: str) -> Path | None:
        """The folder of a decoded output; None where it is missing or not finished."""
        folder = self.work / "decode" / subset / f"{label}{self.ending}"
        return folder if self.is_whole(folder) else None

    def score(self, subset: str, label: str) -> Mapping[str, float]:
        """The scores of a decoded output by their columns; empty where it is missing or not finished."""
        if self.scores is None or self.output(subset, label) is None:
            return {}
        return self.scores.of(subset, f"{label}{self.ending}")

    def test_set(self, subset: str) -> tuple[str, int] | None:
        """Name of a test set, and how many sentences of it were decoded; `subset` is fairseq's name of it."""
        folders = filter(self.is_whole, self.work.glob(f"decode/{subset}/*"))
        labels = [folder.name for folder in folders]
        if self.scores is None or not labels:
            return None
        return self.scores.size(subset, labels)

    @cache  # noqa: B019
    def decoding(self, subset: str, label: str) -> Decoding | None:
        """The counters of a decoded output."""
        folder = self.output(subset, label)
        if folder is None or not (folder / "stats.jsonl").is_file():
            return None
        return read_decoding(folder)

    @cache  # noqa: B019
    def record(self, name: str) -> Record | None:
        """What aggdec bench wrote to NAME.json in the work folder."""
        file = f"{name}{self.ending}.json"
        if (self.work / file).is_file():
            return load_record(self.work / file)
        self.missing.append(file)
        return None

    @cache  # noqa: B019
    def is_whole(self, output: Path) -> bool:
        """Whether fairseq-generate has finished in this folder; it may have skipped sentences that are too long."""
        return any(
            line.startswith("Generate ")
            for path in output.glob("generate-*.txt")
            for line in read_text_lines(path)
        )

    def run(self, name: str, mode: str) -> Run | None:
        """A mode of a record at batch size 1. In its name `-` may stand for `:`, as in names of folders."""
        record = self.record(name)
        for run in record.at(1) if record else ():
            if run.mode.replace(":", "-") == mode.replace(":", "-"):
                return run
        return None

    @cache  # noqa: B019
    def training(self, folder: str) -> list[Validation] | None:
        """The validations of a drafter's training in a folder of the work folder."""
        log = self.work / folder / "train/hydra_train.log"
        return read_validations(log) if log.is_file() else None

    def sizes(self, pattern: str) -> list[str]:
        """What `*` stands for in the names of records such as `blocks/regular-*`; half precision is left out."""
        before, _, after = f"{self.work / pattern}.json".partition("*")
        names = (
            str(path)[len(before) : -len(after)]
            for path in self.work.glob(f"{pattern}.json")
        )
        single = (name for name in names if not name.endswith("-fp16"))
        return sorted(single, key=lambda name: name.zfill(9))

    def targets(self, *drafters: str) -> str:
        """What the stages have said of drafters that could not learn from the verifier's output; else empty."""
        files = (self.work / drafter / "targets" for drafter in drafters)
        said = (f", {file.read_text().strip()}" for file in files if file.is_file())
        return "".join(dict.fromkeys(said))

    def relative(self, command: str) -> str:
        """A command with paths relative to the checkout, and `work/` for the folder of the work folders."""
        checkout = self.config.resolve().parents[1]
        for folder in (self.work.resolve().parent, self.work.absolute().parent):
            command = command.replace(f"{folder}/", "work/")
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
    modules: tuple[str, ...] = ()
    """modules whose times are shown; empty for all"""
    trained_in: str = ""
    """folder of a drafter's training in the work folder"""
    beside: tuple[str, ...] = ()
    """the trainings in the same table"""

    def at(self, label: str | None = None, **fields: Any) -> Place:
        """The same place but for these fields."""
        return replace(self, label=self.label if label is None else label, **fields)

    def score(self, column: str) -> float | None:
        """A score of the decoded output, in percent."""
        return self.results.score(self.set, self.label).get(column)

    @property
    def timed(self) -> Run | None:
        """The timed mode."""
        return self.results.run(self.record, self.mode or self.label)

    @property
    def run(self) -> Run:
        """The timed mode; raises `NotMeasuredError`, as do the two below."""
        return known(self.timed)

    @property
    def baseline(self) -> Run:
        """The mode that a speed-up is over."""
        return known(self.results.run(self.over_record or self.record, self.over))

    @property
    def counts(self) -> Counts:
        """The counters of the whole test set, or if it has none of the timed sentences."""
        return (self.decoding or self.run).counts

    @property
    def decoding(self) -> Decoding | None:
        """The counters of the decoded output."""
        return self.results.decoding(self.set, self.label)

    @property
    def training(self) -> list[Validation] | None:
        """The validations of the drafter's training."""
        return self.results.training(self.trained_in)
