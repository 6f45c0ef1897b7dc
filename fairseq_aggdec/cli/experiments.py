"""`scripts/reproduce.sh --list` and `--small`: what the folders of configs/ reproduce, by their about.yaml."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.lab.grid import TERMINAL, text_table
from fairseq_aggdec.structured_files import read_yaml

SHARED = "shared"
"""the folder of configs/ that is no experiment"""


@dataclass(frozen=True)
class Experiment:
    """What `about.yaml` of an experiment says."""

    name: str
    title: str
    answers: list[str]
    """tables and figures"""
    disk_gb: float
    gpu_hours: float
    """of a V100, for the stages that run without being named; an estimate"""
    cpu_hours: float = 0
    """of two cores"""
    small: list[str] = field(default_factory=list)
    """stand-ins on little data: an experiment, and stages of it if not all"""
    no_small: str = ""
    """why there is no stand-in"""

    @property
    def full_size(self) -> bool:
        return bool(self.small or self.no_small)


def read_experiment(folder: Path) -> Experiment:
    """Reads a folder's about.yaml.

    Raises:
        AggdecError: it is not there, or lacks something.
    """
    path = folder / "about.yaml"
    if not path.is_file():
        raise AggdecError(f"{path} does not exist: every experiment says there what it answers and takes")
    about = read_yaml(path)
    try:
        return Experiment(folder.name, **about)
    except TypeError as error:
        raise AggdecError(f"{path}: {error}") from error


def read_experiments(configs: Path) -> list[Experiment]:
    """All experiments, those of full size first."""
    folders = sorted(path for path in configs.iterdir() if path.is_dir() and path.name != SHARED)
    return sorted((read_experiment(folder) for folder in folders), key=lambda item: not item.full_size)


def table(experiments: Sequence[Experiment]) -> str:
    """The experiments, a row each."""
    rows = [
        [
            item.name,
            "; ".join(item.answers),
            ", ".join(line.split()[0] for line in item.small) or ("none" if item.full_size else ""),
            f"{item.disk_gb:g}",
            f"{item.gpu_hours:,} GPU" if item.full_size else f"{item.cpu_hours} CPU",
        ]
        for item in experiments
    ]
    headers = ["experiment", "answers", "--small", "GB", "hours"]
    return text_table(headers, rows, TERMINAL, widths=[None, 60, None, None, None])


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Prints; see --help.

    Raises:
        AggdecError: an experiment without about.yaml, or without a stand-in.
    """
    parser = argparse.ArgumentParser(prog="fairseq_aggdec.cli.experiments", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="table of the experiments")
    small = commands.add_parser("small", help="an experiment's stand-ins, one a line: its name, and stages if not all")
    for command in (listing, small):
        command.add_argument("configs", type=Path, help="the folder configs/")
    small.add_argument("experiment")
    args = parser.parse_args(argv)
    if args.command == "list":
        print(table(read_experiments(args.configs)))
        return
    experiment = read_experiment(args.configs / args.experiment)
    if not experiment.small:
        reason = f"has none: {experiment.no_small}" if experiment.no_small else "is small itself; leave --small out"
        raise AggdecError(f"--small: {experiment.name} {reason}")
    print("\n".join(experiment.small))


if __name__ == "__main__":
    main()
