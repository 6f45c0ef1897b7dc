"""Tests of `aggdec demo` with the shipped models."""

import io
import os
import re
import subprocess
from pathlib import Path

import pytest

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.text.shipped import SHIPPED

SENTENCE = "She have two brother in Zürich."


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the demo prints when it times each mode once."""
    aggdec(["demo", *arguments, "--rounds", "1"])
    return capsys.readouterr().out


def give_on_standard_input(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_the_script_sets_up_and_runs_the_demo_whatever_the_locale_says() -> None:
    script = Path(__file__).resolve().parents[2] / "scripts" / "demo.sh"
    command = ["bash", str(script), SENTENCE, "--rounds", "1"]
    environment = os.environ | {"LC_ALL": "C"}
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=900, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "demo: about half a minute" in done.stderr
    assert "1 of 1" in done.stdout
    assert f"source  {SENTENCE}" in done.stdout


def test_built_in_sentences_are_corrected_losslessly(capsys: pytest.CaptureFixture[str]) -> None:
    sentences = (SHIPPED["gec"].folder / "sentences.txt").read_text(encoding="utf-8").splitlines()
    assert len(sentences) >= 50
    sentences = sentences[::12]
    output = printed(capsys, *sentences)
    corrected = re.search(r"(\d+) of (\d+) sentences corrected", output)
    assert corrected
    assert int(corrected[2]) == len(sentences)
    assert int(corrected[1]) > len(sentences) / 2
    rows = {line.split()[0]: line for line in output.splitlines() if line.startswith(("beam", "greedy", "iad"))}
    assert f"{len(sentences)} of {len(sentences)}" in rows["iad"]
    assert f"{len(sentences)} of {len(sentences)}" in rows["greedy"]
    assert re.search(r"^ +1  \[", output, re.MULTILINE)


def test_sentences_of_a_file_end_in_line_feeds_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = "one\u2028two\x0bthree\x0cfour\x85\n\nfive\r\n\n".encode()
    (tmp_path / "input.txt").write_bytes(data)
    given: list[list[str]] = []
    monkeypatch.setattr("fairseq_aggdec.demo.showing.show", lambda demo, sentences, *_: given.append(sentences))
    aggdec(["demo", "--input", str(tmp_path / "input.txt")])
    give_on_standard_input(monkeypatch, data)
    aggdec(["demo", "--input", "-"])
    assert given == [["one\u2028two\x0bthree\x0cfour", "five"]] * 2


def test_translation_shows_drafts_and_is_lossless_under_gad(capsys: pytest.CaptureFixture[str]) -> None:
    sentences = (SHIPPED["mt"].folder / "sentences.txt").read_text(encoding="utf-8").splitlines()
    assert len(sentences) >= 50
    sentences = sentences[::17]
    output = printed(capsys, "--task", "mt", *sentences)
    rows = {
        line.split()[0]: line
        for line in output.splitlines()
        if line.startswith(("beam", "aggressive", "greedy", "gad"))
    }
    assert list(rows) == ["beam5", "aggressive-beam:5", "beam1", "greedy", "gad", "gad++", "gad++:5:3"]
    for mode in ("greedy", "gad"):
        assert f"{len(sentences)} of {len(sentences)}" in rows[mode]
    assert len(re.findall(r"^ +1  \[", output, flags=re.MULTILINE)) >= 3  # first iterations, drafts accepted
    assert re.search(r"/[^/]+/", output, flags=re.MULTILINE)  # and something rejected
