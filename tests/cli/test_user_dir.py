"""`aggdec user-dir` names the installed package, quickly and from any folder."""

from __future__ import annotations

from pathlib import Path

import pytest

import fairseq_aggdec
from fairseq_aggdec.cli.user_dir import main
from tests.helpers import run_cli


def test_prints_the_package_from_another_folder(tmp_path: Path) -> None:
    printed = run_cli("aggdec", "user-dir", cwd=tmp_path).stdout
    path = Path(printed.strip())
    assert printed == f"{path}\n"
    assert path.is_absolute()
    assert (path / "tasks").is_dir()
    assert path.samefile(Path(fairseq_aggdec.__file__).parent)


def test_refuses_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["somewhere"])
    assert exit_.value.code == 2
    assert "unrecognized arguments: somewhere" in capsys.readouterr().err
