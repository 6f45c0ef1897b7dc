"""The verbs of `aggdec` that only experiments need: `prepare`, `nat-start`, `score experiment`, `report ...`."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, UseAppendAction, arg

from fairseq_aggdec.cli.options import NO_DEFAULT, Count, Many, Maybe, Verb
from fairseq_aggdec.cli.report import Score
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import check_result_file, written_whole

if TYPE_CHECKING:
    from fairseq_aggdec.lab.score.score_table import ScoreTable

_FORMS = {"markdown": "github", "latex": "latex_booktabs"}


@dataclass(kw_only=True)
class DataSets:
    #: folder of the data sets, where M2 files are (default: AGGDEC_DATA, or ../shared/data)
    data: Annotated[Path, NO_DEFAULT] = field(
        default_factory=lambda: Path(os.environ.get("AGGDEC_DATA") or "../shared/data")
    )


@dataclass(kw_only=True)
class Prepare(Verb):
    """Make fairseq's binary data, by an experiment's prepare.py."""

    # an experiment's prepare.py, such as configs/gec_small/prepare.py
    config: Positional[Path]
    data: Path  # folder of the data sets
    work: Path  # folder for the experiment's outputs
    workers: Count = 1  # number of processes

    def run(self) -> None:
        logging.getLogger().setLevel(logging.INFO)
        from experiments.steps import prepare

        prepare(self.config, self.data, self.work, self.workers)


@dataclass(kw_only=True)
class NatStart(Verb):
    """Write a Transformer's weights as fairseq's non-autoregressive models take them
    (--finetune-from-model)."""

    checkpoint: Positional[Path]  # checkpoint of a Transformer encoder-decoder
    # nonautoregressive_transformer, cmlm_transformer, levenshtein_transformer, ...
    architecture: Positional[str]
    output: Path  # file to write

    def run(self) -> None:
        from experiments.nat_start import write_nat_start

        write_nat_start(self.checkpoint, self.architecture, self.output)


@dataclass(kw_only=True)
class ScoreExperiment(DataSets, Score):
    """Print a table of all decoded test sets of an experiment."""

    config: Positional[Path]  # the experiment's prepare.py
    work: Path  # the experiment's work folder
    #: also write the outputs, FOLDER/SET/DECODING.txt, one sentence a line, for another scorer
    write: Annotated[Maybe[Path], arg(metavar="FOLDER")] = None

    def tables(self) -> list[ScoreTable]:
        from experiments.experiment import read_experiment
        from experiments.scores import ExperimentScores

        config, _ = read_experiment(self.config)
        return ExperimentScores(config, self.work, self.data).tables(self.write)


@dataclass(kw_only=True)
class _Page(Verb):
    """A verb that prints tables."""

    format: Literal["markdown", "latex"] = "markdown"  # of the tables
    output: Maybe[Path] = None  # also write the tables to this file

    def run(self) -> None:
        text = self.page(_FORMS[self.format])
        print(text, end="")
        if self.output is not None:
            check_result_file(self.output, text[:1])
            with written_whole(self.output) as partial:
                partial.write_text(text, encoding="utf-8")

    def page(self, form: str) -> str:
        """The page, with tables in a form of `lab.grid`."""
        raise NotImplementedError


@dataclass(kw_only=True)
class ReportExperiment(DataSets, _Page):
    """Print an experiment's results beside the papers' tables, or further tables."""

    experiment: Positional[str]  # a folder of configs/, or its name
    # its work folder (default: the folder of its name in AGGDEC_WORK, or in work)
    work: Maybe[Path] = None
    #: only this table: a paper's, such as ge2022/5, or one that tables.yaml names (default: all of the papers)
    table: Maybe[str] = None
    #: draw the figure of this further table into this .png or .svg; of several figures the second where repeated
    figure: Annotated[UseAppendAction[list[Path]], arg(metavar="FILE")] = field(
        default_factory=list
    )

    def page(self, form: str) -> str:
        if self.output is not None:  # before the scores, which can take minutes
            check_result_file(self.output, "%" if self.format == "latex" else "#")
        for path in self.figure:
            if path.suffix not in (".png", ".svg"):
                raise AggdecError(f"--figure {path}: must end with .png or .svg")
        config = _config(self.experiment)
        work = self.work or Path(os.environ.get("AGGDEC_WORK", "work")) / config.name
        from experiments.pages import experiment_text

        return experiment_text(
            config, work, self.data, self.table, self.figure, self.command, form
        )


def _config(given: str) -> Path:
    for folder in (Path(given), Path("configs") / given):
        if (folder / "about.yaml").is_file():
            return folder.resolve()
    raise AggdecError(
        f"{given}: no such experiment here; give its folder, or run this where configs/ is"
    )


@dataclass(kw_only=True)
class ReportPaper(_Page):
    """Print tables of the papers alone, or their list."""

    # such as ge2022/5 (default: list all tables)
    tables: Positional[Many[str]] = field(default_factory=list)

    def page(self, form: str) -> str:
        from experiments.pages import papers_text

        return papers_text(self.tables, form)
