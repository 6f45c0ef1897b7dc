"""Tests of `aggdec bench`; its numbers are tested in `tests/lab/benchmarking/test_measure.py`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fairseq_aggdec.cli import verify
from fairseq_aggdec.cli.bench import main
from fairseq_aggdec.errors import AggdecError
from tests.helpers import ToyModel


def test_bench_prints_and_writes_the_comparison(
    toy_model_dir: ToyModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "bench.json"
    reference = tmp_path / "reference.txt"
    reference.write_bytes((toy_model_dir.data / "test.src").read_bytes())
    options = "--limit 4 --repeats 2 --modes beam5,greedy,iad --threads 1 --no-memory".split()
    files = ["--reference", str(reference), "--json", str(record)]
    main([str(toy_model_dir.data), "--path", str(toy_model_dir.checkpoint), *options, *files])
    printed = capsys.readouterr()
    assert f"test of {toy_model_dir.data} by {toy_model_dir.checkpoint}, 4 sentences, cpu, 2 rounds" in printed.out
    assert "4 of 4" in printed.out
    assert "INFO" not in printed.err
    written = json.loads(record.read_text())
    assert [run["mode"] for run in written["runs"]] == ["beam5", "greedy", "iad"]
    assert all(run["rounds"] == 2 for run in written["runs"])
    assert all(run["bleu"] is not None for run in written["runs"])
    assert "torch" in written["machine"]["versions"]


def test_references_must_fit_the_split(toy_model_dir: ToyModel, tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("one line\n")
    arguments = [str(toy_model_dir.data), "--path", str(toy_model_dir.checkpoint)]
    with pytest.raises(AggdecError, match=r"short.txt has 1 lines, test of .* 60 sentences"):
        main([*arguments, "--reference", str(tmp_path / "short.txt")])


@pytest.mark.parametrize("verb", [main, verify.main])
def test_a_record_replaces_no_dictionary(
    verb: Callable[[list[str]], None], toy_model_dir: ToyModel, tmp_path: Path
) -> None:
    """It is met before anything is measured."""
    mistaken = tmp_path / "dict.txt"
    mistaken.write_text("the 12\n")
    with pytest.raises(AggdecError, match=r"dict\.txt: exists and is another kind of file"):
        verb(["no such data", "--path", str(toy_model_dir.checkpoint), "--json", str(mistaken)])
    assert mistaken.read_text() == "the 12\n"
