"""Tests of `aggdec demo` with the shipped model."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from fairseq_aggdec.demo.sentences import read_sentences
from fairseq_aggdec.demo.tasks import TASKS
from fairseq_aggdec.errors import AggdecError
from tests.helpers import run_cli


def test_the_script_sets_up_and_runs_the_demo() -> None:
    script = Path(__file__).resolve().parents[2] / "scripts" / "demo.sh"
    command = ["bash", str(script), "She have two brother.", "--rounds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "1 of 1" in done.stdout


def test_built_in_sentences_are_corrected_losslessly() -> None:
    sentences = (TASKS["gec"].folder / "sentences.txt").read_text(encoding="utf-8").splitlines()
    assert len(sentences) >= 50
    output = run_cli("aggdec", "demo", "--rounds", 1).stdout
    corrected = re.search(r"(\d+) of (\d+) sentences corrected", output)
    assert corrected
    assert int(corrected[2]) == len(sentences)
    assert int(corrected[1]) > len(sentences) / 2
    rows = {line.split()[0]: line for line in output.splitlines() if line.startswith(("beam", "greedy", "iad"))}
    assert f"{len(sentences)} of {len(sentences)}" in rows["iad"]
    assert f"{len(sentences)} of {len(sentences)}" in rows["greedy"]
    assert re.search(r"blocks  \[", output)


def test_sentences_from_arguments_a_file_and_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same whatever the locale says."""
    sentence = "She have two brother in Zürich."
    with monkeypatch.context() as patch:
        patch.setenv("LC_ALL", "C")
        by_argument = run_cli("aggdec", "demo", sentence, "--rounds", 1).stdout
    file = tmp_path / "input.txt"
    file.write_text(f"\n{sentence}\n\n", encoding="utf-8")
    by_file = run_cli("aggdec", "demo", "--input", file, "--rounds", 1).stdout
    by_stdin = run_cli("aggdec", "demo", "--input", "-", "--rounds", 1, stdin=sentence + "\n").stdout
    outputs = [re.findall(r"output  (.*)", text) for text in (by_argument, by_file, by_stdin)]
    assert len(outputs[0]) == 1
    assert outputs[0] == outputs[1] == outputs[2]


def test_line_feeds_alone_end_a_sentence(tmp_path: Path) -> None:
    """As for fairseq; other separators stay within it."""
    file = tmp_path / "input.txt"
    file.write_bytes("one\u2028two\x0bthree\x0cfour\x85\nfive\r\n\n".encode())
    assert read_sentences([], str(file), file) == ["one\u2028two\x0bthree\x0cfour", "five"]


def test_an_argument_that_is_not_utf8_is_named() -> None:
    with pytest.raises(AggdecError, match=r"the sentence 'caf\? au lait' is not valid UTF-8 at character 4"):
        read_sentences([os.fsdecode(b"caf\xe9 au lait")], None, Path())


def test_translation_shows_drafts_and_is_lossless_under_gad() -> None:
    sentences = (TASKS["mt"].folder / "sentences.txt").read_text(encoding="utf-8").splitlines()
    assert len(sentences) >= 50
    output = run_cli("aggdec", "demo", "--task", "mt", "--rounds", 1).stdout
    rows = {line.split()[0]: line for line in output.splitlines() if line.startswith(("beam", "greedy", "gad"))}
    assert list(rows) == ["beam5", "beam1", "greedy", "gad", "gad++", "gad++:5:3"]
    for mode in ("greedy", "gad"):
        assert f"{len(sentences)} of {len(sentences)}" in rows[mode]
    assert len(re.findall(r"^ +1  \[", output, flags=re.MULTILINE)) >= 3  # first iterations, drafts accepted
    assert re.search(r"/[^/]+/$", output, flags=re.MULTILINE)  # and something rejected


def test_colours_on_request() -> None:
    output = run_cli("aggdec", "demo", "She have two brother.", "--rounds", 1, "--colour", "always").stdout
    assert "\033[34m" in output


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (["--input", "/nowhere/input.txt"], "", "/nowhere/input.txt: cannot be read"),
        (["--input", "-"], "good line\n\xff\n".encode("latin-1"), "standard input, line 2: not valid UTF-8"),
        (["--input", "-"], " \n\n", "no sentence given"),
        (["word", "--input", "-"], "", "give sentences or --input, not both"),
        (["word " * 600], "", "is longer than 512 tokens"),
    ],
)
def test_bad_input_is_named_without_a_traceback(arguments: list[str], stdin: str | bytes, message: str) -> None:
    done = run_cli("aggdec", "demo", *arguments, stdin=stdin, check=False)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
