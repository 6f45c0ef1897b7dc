import logging
from pathlib import Path

import pytest

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.errors import AggdecError
from tests.support.helpers import ToyModel


def test_a_complete_folder_is_left_alone(
    toy_model_dir: ToyModel, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    output = tmp_path / "out"
    arguments = [toy_model_dir.data, output, "--cpu", "--teacher", toy_model_dir.checkpoint, "--max-source-len", 6]
    command = ["distill", *map(str, arguments), "--beam", "1", "--max-len-b", "3"]
    with caplog.at_level(logging.INFO):
        aggdec(command)
        assert "different sources in" in caplog.text
        assert "are empty or longer than 6 tokens and are skipped" in caplog.text
        stamp = (output / "distillation.json").stat().st_mtime_ns
        caplog.clear()
        aggdec(command)
        assert caplog.messages[-1] == f"{output} is complete"
    assert (output / "distillation.json").stat().st_mtime_ns == stamp
    with pytest.raises(AggdecError, match="out: is there, made in another way"):
        aggdec([*command, "--lenpen", "2"])
