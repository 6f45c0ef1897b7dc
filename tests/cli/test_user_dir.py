"""`aggdec-user-dir` names the installed package, quickly and from any folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import fairseq_aggdec
from fairseq_aggdec.cli.user_dir import main
from tests.helpers import run_cli


def test_prints_the_package_from_another_folder(tmp_path: Path) -> None:
    printed = run_cli("aggdec-user-dir", cwd=tmp_path).stdout
    path = Path(printed.strip())
    assert printed == f"{path}\n"
    assert path.is_absolute()
    assert (path / "tasks").is_dir()
    assert path.samefile(Path(fairseq_aggdec.__file__).parent)


def test_imports_neither_torch_nor_fairseq() -> None:
    program = "import sys; from fairseq_aggdec.cli.user_dir import main; main([]); print({*sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert "'fairseq_aggdec.cli.user_dir'" in done.stdout
    assert "'torch'" not in done.stdout
    assert "'fairseq'" not in done.stdout


def test_refuses_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["somewhere"])
    assert exit_.value.code == 2
    assert "unrecognized arguments: somewhere" in capsys.readouterr().err
