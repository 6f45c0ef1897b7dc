"""Tests of `aggdec demo` with the shipped models."""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.demo.shipped import SHIPPED
from fairseq_aggdec.lab import demonstration

SENTENCE = "She have two brother in Zürich."
DRAFTED = {"gec": ["iad"], "mt": ["gad", "gad++", "gad++:5:3"]}


def test_the_script_sets_up_and_runs_the_demo_whatever_the_locale_says() -> None:
    script = Path(__file__).resolve().parents[2] / "scripts" / "demo.sh"
    command = ["bash", str(script), SENTENCE, "--rounds", "1"]
    environment = os.environ | {"LC_ALL": "C"}
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", timeout=900, env=environment
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "demo: about half a minute" in done.stderr
    assert "1 of 1" in done.stdout
    assert f"{SENTENCE}\n   She has two brothers in Zürich.\n" in done.stdout
    assert f"source  {SENTENCE}" in done.stdout


@pytest.mark.parametrize("task", DRAFTED)
def test_built_in_sentences_are_decoded_losslessly_and_their_drafts_shown(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = SHIPPED[task].folder / "sentences.txt"
    sentences = file.read_text("utf-8").splitlines()[::14]
    (tmp_path / "input").write_text("\n\n".join(sentences), "utf-8")
    aggdec(f"demo --task {task} --input {tmp_path}/input --rounds 1".split())
    blocks, _, table = capsys.readouterr().out.partition("\nmode ")
    rows = {line.split()[0]: line for line in table.splitlines()[3:]}
    searches = "beam5 aggressive-beam:5 beam1 greedy".split()
    assert list(rows) == [*searches, *DRAFTED[task]]
    for mode in ("greedy", DRAFTED[task][0]):
        assert re.search(r" (\d+) of \1$", rows[mode]), (
            "of all, or of a few on a busy machine"
        )
    accepted = re.findall(r"^ +1  \[", blocks, flags=re.MULTILINE)
    assert len(accepted) >= 3, "of first drafts"
    if task == "mt":
        assert re.search(r"/[^/]+/$", blocks, flags=re.MULTILINE), (
            "and something rejected"
        )


def test_fairseq_decodes_what_fits_into_its_time_and_a_busy_machine_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demonstration, "_SECONDS", 0)
    for clock, is_busy in ((lambda: 0.0, True), (time.monotonic, False)):
        monkeypatch.setattr(time, "thread_time", clock)
        aggdec(["demo", SENTENCE, "He go to school.", "--show", "0"])
        printed = capsys.readouterr().out
        assert (
            "2 of 2 sentences corrected\n\nTimed sentences: 1, as many as beam5"
            in printed
        )
        assert "ms a sentence" in printed
        assert (
            "THE MACHINE WAS BUSY: this program had a processor for 0%" in printed
        ) == is_busy
