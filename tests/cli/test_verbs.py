"""`aggdec VERB`: the list of verbs, and the commands that they were before."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

import fairseq_aggdec
from fairseq_aggdec.cli.verbs import GROUPS, VERBS, former_command, main
from fairseq_aggdec.errors import AggdecError


def test_the_verbs_and_the_package_are_named_from_any_folder_without_torch_or_fairseq(tmp_path: Path) -> None:
    program = (
        "import sys; from fairseq_aggdec.cli.verbs import main; main(['--help']); main(['user-dir']); "
        "print({'torch', 'fairseq', 'numpy'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, cwd=tmp_path)
    *printed, folder, imported = done.stdout.splitlines()
    assert imported == "set()"
    assert Path(folder).samefile(Path(fairseq_aggdec.__file__).parent)
    assert Path(folder).is_absolute()
    assert [line[:-1] for line in printed if line.endswith(":")] == list(GROUPS)
    assert [line.split()[0] for line in printed if line.startswith("  ")] == list(VERBS)


def test_an_unknown_verb_is_one_line_with_the_nearest() -> None:
    with pytest.raises(AggdecError, match=r"^aggdec benhc: there is no such verb; the nearest is bench.*all$"):
        main(["benhc"])


NEWER = {"drafter", "correct", "translate", "serve"}
"""verbs that never were commands of their own"""


def test_each_verb_has_a_former_command_that_says_its_new_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed = {script.name: script.load() for script in distribution("fairseq-aggdec").entry_points}
    assert installed == {"aggdec": main} | {f"aggdec-{verb}": former_command for verb in VERBS.keys() - NEWER}
    for verb in VERBS.keys() - NEWER:
        monkeypatch.setattr(sys, "argv", [f"/bin/aggdec-{verb}", "--help"])
        with pytest.raises(SystemExit) as exit_:
            former_command()
        assert exit_.value.code == 0
        printed = capsys.readouterr()
        assert printed.err == f"aggdec-{verb} is now `aggdec {verb}`; the old name goes with the next version\n"
        assert re.match(rf"usage: aggdec {verb} ", printed.out)


def test_a_former_command_passes_words_and_exit_status_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fairseq_aggdec.cli.compare.main", lambda words: len(words))
    monkeypatch.setattr(sys, "argv", ["aggdec-compare", "a", "b", "--show"])
    assert former_command() == 3
    assert capsys.readouterr().out == ""
