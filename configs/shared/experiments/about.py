"""`scripts/reproduce.sh --list` and `--small`: the experiments in configs/ and their small stand-ins."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from experiments.yaml_files import read_yaml
from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.lab.grid import TERMINAL, text_table

SHARED = "shared"
"""the only folder of configs/ that is no experiment"""


@dataclass(frozen=True)
class About:
    """The content of an experiment's `about.yaml`."""

    name: str
    title: str
    answers: list[str]
    """the tables and figures that it reproduces"""
    disk_gb: float
    gpu_hours: float
    """of a V100 in half precision, estimated: trainings, distillation, decoding and timing of the default stages"""
    more_gpu_hours: dict[str, float] = field(default_factory=dict)
    """of further stages"""
    more_disk_gb: dict[str, float] = field(default_factory=dict)
    """of further stages"""
    host_gb: float | None = None
    """memory of the machine, estimated: of the stage that needs the most"""
    cpu_hours: float = 0
    """for two cores"""
    memory_gb: float | None = None
    """of the largest training: of each GPU, estimated, or of a CPU, measured; None: neither"""
    small: list[str] = field(default_factory=list)
    """stand-ins on little data: each an experiment's name, and its stages if not all"""
    no_small: str = ""
    """why there is no stand-in"""

    @property
    def h100_hours(self) -> float:
        """The hours of an H100, estimated: a third."""
        third = self.gpu_hours / 3
        return round(third, 1 if third < 1 else -1 if third >= 100 else 0)

    @property
    def full_size(self) -> bool:
        """Whether it is on a paper's data and not on little data."""
        return bool(self.small or self.no_small)


def read_about(folder: Path) -> About:
    """Read the about.yaml of an experiment's folder.

    Raises:
        AggdecError: there is no such file, or an entry is missing.
    """
    path = folder / "about.yaml"
    if not path.is_file():
        raise AggdecError(
            f"{path} does not exist: it must say what the experiment answers and needs"
        )
    about = read_yaml(path)
    try:
        return About(folder.name, **about)
    except TypeError as error:
        raise AggdecError(f"{path}: {error}") from error


def read_all(configs: Path) -> list[About]:
    """All experiments, first those of full size."""
    folders = sorted(
        path for path in configs.iterdir() if path.is_dir() and path.name != SHARED
    )
    return sorted(
        (read_about(folder) for folder in folders), key=lambda item: not item.full_size
    )


def table(experiments: Sequence[About]) -> str:
    """The table of `--list`, with a row for each experiment."""
    rows = [
        [
            item.name,
            "; ".join(item.answers),
            ", ".join(line.split()[0] for line in item.small)
            or ("none" if item.full_size else ""),
            f"{item.disk_gb:g}",
            f"{item.gpu_hours:,} / {item.h100_hours:,g} GPU"
            if item.gpu_hours
            else f"{item.cpu_hours} CPU",
        ]
        for item in experiments
    ]
    headers = ["experiment", "answers", "--small", "GB", "hours (V100 / H100)"]
    return text_table(headers, rows, TERMINAL, widths=[None, 60, None, None, None])


def needs(experiment: About) -> str:
    """What `--dry-run` says of an experiment before its commands."""

    def more(of_stages: dict[str, float]) -> str:
        return (
            f"; more for {', '.join(f'{stage} {value:,}' for stage, value in of_stages.items())}"
            if of_stages
            else ""
        )

    # what every experiment needs
    memory = (
        "not measured" if experiment.memory_gb is None else f"{experiment.memory_gb:g}"
    )
    lines = [
        experiment.title,
        f"disk, GB: {experiment.disk_gb:g}{more(experiment.more_disk_gb)}",
    ]
    # an experiment of full size needs GPUs, a small one a processor
    if experiment.gpu_hours:
        hours = f"{experiment.gpu_hours:,} of a V100, or {experiment.h100_hours:,g} of an H100"
        lines += [
            f"hours, estimated: {hours}{more(experiment.more_gpu_hours)}",
            f"memory of each GPU, GB: {memory}",
        ]
    else:
        lines += [
            f"hours of two cores: {experiment.cpu_hours}",
            f"memory, GB: {memory}",
        ]
    if experiment.host_gb:
        lines.append(f"memory of the machine, GB: {experiment.host_gb:g}")
    return "\n".join(lines)


def small(experiment: About) -> str:
    """The stand-ins of an experiment, one in a line: name, and stages if not all.

    Raises:
        AggdecError: it has none.
    """
    if not experiment.small:
        reason = (
            f"has none: {experiment.no_small}"
            if experiment.no_small
            else "is small itself; leave --small out"
        )
        raise AggdecError(f"--small: {experiment.name} {reason}")
    return "\n".join(experiment.small)


@on_command_line()
def main(configs: str, experiment: str | None = None, what: str = "small") -> None:
    """Print the table of all experiments in the folder configs/, or the stand-ins or `needs` of one."""
    if experiment is None:
        print(table(read_all(Path(configs))))
        return
    about = read_about(Path(configs, experiment))
    print(needs(about) if what == "needs" else small(about))


if __name__ == "__main__":
    main(*sys.argv[1:])
