"""`aggdec user-dir` names the installed package, quickly and from any folder."""

from __future__ import annotations

from pathlib import Path

import fairseq_aggdec
from tests.helpers import run_cli


def test_prints_the_package_from_another_folder(tmp_path: Path) -> None:
    printed = run_cli("aggdec", "user-dir", cwd=tmp_path).stdout
    path = Path(printed.strip())
    assert printed == f"{path}\n"
    assert path.is_absolute()
    assert (path / "tasks").is_dir()
    assert path.samefile(Path(fairseq_aggdec.__file__).parent)
