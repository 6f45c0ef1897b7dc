"""`aggdec VERB`: the list of verbs, and the commands that they were before."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import distribution

import pytest

from fairseq_aggdec.cli.verbs import GROUPS, VERBS, former_command, main
from fairseq_aggdec.errors import AggdecError


def test_the_verbs_are_listed_in_groups_without_torch_or_fairseq() -> None:
    program = (
        "import sys; from fairseq_aggdec.cli.verbs import main; main(['--help']); main(['user-dir']); "
        "print({'torch', 'fairseq', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    *printed, imported = done.stdout.splitlines()
    assert imported == "set()"
    assert [line[:-1] for line in printed if line.endswith(":")] == list(GROUPS)
    assert [line.split()[0] for line in printed if line.startswith("  ")] == list(VERBS)


@pytest.mark.parametrize(("given", "nearest"), [("benhc", "bench"), ("super_resolve", "super-resolve"), ("x", "")])
def test_an_unknown_verb_is_one_line_with_the_nearest(given: str, nearest: str) -> None:
    with pytest.raises(AggdecError, match=f"^aggdec {given}: there is no such verb; the nearest is {nearest}.*all$"):
        main([given])


NEWER = {"drafter"}
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
