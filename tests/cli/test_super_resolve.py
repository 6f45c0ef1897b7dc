"""What `aggdec super-resolve` refuses; what it does is tested in tests/cli_integration/test_super_resolution.py."""

from pathlib import Path

import pytest
import torch

from fairseq_aggdec.cli.super_resolve import main
from fairseq_aggdec.errors import AggdecError


def test_a_checkpoint_of_another_task(tmp_path: Path) -> None:
    torch.save({"cfg": {"task": {"_name": "translation"}}, "args": None, "model": {}}, tmp_path / "model.pt")
    with pytest.raises(AggdecError, match=r"model\.pt: trained for --task translation; give a model of"):
        main(["DATA.npz", "--path", str(tmp_path / "model.pt"), "--output", str(tmp_path)])
