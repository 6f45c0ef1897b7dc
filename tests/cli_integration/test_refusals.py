"""What cannot be honoured is refused by name, before anything is decoded.

The options of fairseq's search are in tests/tasks/test_refused_options.py.
"""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fairseq_cli import generate as generate_command

from fairseq_aggdec.errors import AggdecError
from tests.cli_integration.correction import PLUGIN, at_once, generate
from tests.helpers import ToyModel, parse_generate


def test_in_processes_of_their_own(correction_model: ToyModel) -> None:
    """fairseq's own check of --sampling, ours of --max-draft-len, argparse's of --decoding; one line each."""
    runs = {
        "--sampling": partial(generate, correction_model, "iad", "--sampling", check=False),
        "--max-draft-len -1": partial(generate, correction_model, "iad", "--max-draft-len", -1, check=False),
        "'fastest'": partial(generate, correction_model, "fastest", check=False),
    }
    for (name, _), process in zip(runs.items(), at_once(*runs.values()), strict=True):
        assert process.returncode == (2 if name == "'fastest'" else 1)
        assert "Traceback" not in process.stdout + process.stderr
        [message] = [line for line in process.stderr.splitlines() if "error: " in line]
        assert name in message
        assert not parse_generate(process.stdout)


@pytest.fixture
def in_this_process(
    correction_model: ToyModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    """Runs fairseq-generate's main function with arguments; returns the error it ends with."""

    def run(*options: object, data: Path = correction_model.data) -> AggdecError:
        task = ["--task", "aggressive_translation", "--decoding", "iad", "--cpu"]
        fixed = [data, "--path", correction_model.checkpoint, "--user-dir", PLUGIN, *task]
        monkeypatch.setattr("sys.argv", ["fairseq", *map(str, [*fixed, *options])])
        with pytest.raises(AggdecError) as caught:
            generate_command.cli_main()
        assert "H-" not in capsys.readouterr().out
        return caught.value

    return run


@pytest.mark.parametrize(
    "options",
    [
        ["--decoding-stats", "/nowhere/stats.jsonl"],
        ["--max-tokens", "5"],
    ],
    ids=lambda options: options[0],
)
def test_options(in_this_process: Any, options: list[str]) -> None:
    assert options[0] in str(in_this_process(*options))


def test_a_block_size_of_zero(in_this_process: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """argparse says it; in a configuration it stands for what the drafter was trained for."""
    with pytest.raises(SystemExit):
        in_this_process("--block-size", 0)
    assert "argument --block-size: 0: must be at least 1" in capsys.readouterr().err


def test_missing_dictionary(in_this_process: Any, correction_model: ToyModel, tmp_path: Path) -> None:
    """Of languages that are to be found out."""
    shutil.copytree(correction_model.data, tmp_path / "data")
    (tmp_path / "data" / "dict.src.txt").unlink()
    message = str(in_this_process(data=tmp_path / "data"))
    assert "dict.src.txt" in message
    assert str(tmp_path / "data") in message
