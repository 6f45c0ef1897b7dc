"""Tables go to the terminal, and into a file where one is named."""

import argparse
from pathlib import Path

import pytest

from fairseq_aggdec.cli.markdown_output import add_output_option, machines_of, show
from tests.benchmarking.tiny import made_up_record, made_up_run


def test_printed_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_output_option(parser)
    file = tmp_path / "table.md"
    show("| a |\n", parser.parse_args([]).output)
    show("| β |\n", parser.parse_args(["--output", str(file)]).output)
    assert capsys.readouterr().out == "| a |\n| β |\n"
    assert file.read_text(encoding="utf-8") == "| β |\n"
    assert list(tmp_path.iterdir()) == [file], "nothing partial is left"


def test_each_machine_once() -> None:
    one, same, other = (made_up_record([made_up_run("greedy", 0.1)]) for _ in range(3))
    other.machine = {**other.machine, "threads": 2}
    assert machines_of([one, same, other]) == ("P, 1 threads of 2 cores; torch 0 / P, 2 threads of 2 cores; torch 0")
