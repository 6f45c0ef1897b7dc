"""Options of `aggdec super-resolve`; what it does is tested in tests/cli_integration/test_super_resolution.py."""

from pathlib import Path

import pytest
import torch

from fairseq_aggdec.cli.super_resolve import main
from fairseq_aggdec.errors import AggdecError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--limit 0", "--limit 0: must be at least 1"),
        ("--block-size -1", "--block-size -1"),
        ("--accept-distance nan", "--accept-distance nan: must be at least 0"),
    ],
)
def test_refused_options(tmp_path: Path, options: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["DATA.npz", "--path", "model.pt", "--output", str(tmp_path), *options.split()])
    assert message in capsys.readouterr().err


def test_refused_checkpoints(tmp_path: Path) -> None:
    with pytest.raises(AggdecError, match=r"none\.pt"):
        main(["DATA.npz", "--path", str(tmp_path / "none.pt"), "--output", str(tmp_path)])
    torch.save({"cfg": {"task": {"_name": "translation"}}, "args": None, "model": {}}, tmp_path / "model.pt")
    with pytest.raises(AggdecError, match=r"model\.pt: trained for --task translation; give a model of"):
        main(["DATA.npz", "--path", str(tmp_path / "model.pt"), "--output", str(tmp_path)])
