from pathlib import Path

import pytest

from fairseq_aggdec.cli import prepare

CONFIG = Path(__file__).resolve().parents[2] / "configs/gec_small/prepare.yaml"


def test_missing_data_set_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prepare.main([str(CONFIG), "--data", str(tmp_path), "--work", str(tmp_path / "work")]) == 1
    error = capsys.readouterr().err
    assert str(tmp_path / "tatoeba-en-de/deu.txt.gz") in error
    assert "AGGDEC_DATA" in error


def test_missing_config_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "prepare.yaml"
    assert prepare.main([str(config), "--data", str(tmp_path), "--work", str(tmp_path)]) == 1
    assert str(config) in capsys.readouterr().err
