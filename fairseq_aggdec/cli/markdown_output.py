"""What the commands that make Markdown tables have in common: printing them and, where asked for, keeping them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_aggdec.files import written_whole

if TYPE_CHECKING:
    from fairseq_aggdec.benchmarking.record import Record


def add_output_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--output FILE`."""
    parser.add_argument("--output", type=Path, help="write the Markdown to this file, too")


def show(text: str, output: Path | None) -> None:
    """Prints a text, and writes it where `--output` says."""
    print(text, end="")
    if output is not None:
        with written_whole(output) as partial:
            partial.write_text(text, encoding="utf-8")


def machines_of(records: Iterable[Record]) -> str:
    """The machines that measurements were made on, each once, in one line."""
    from fairseq_aggdec.benchmarking.machine import describe  # which imports torch

    return " / ".join(dict.fromkeys(describe(record.machine) for record in records))
