"""`aggdec correct` and `aggdec translate`: text or files in, text out."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.demo.shipped import SHIPPED

TEXT = "She have two brother.\n\n  I has a dog; see 12/03/2021.\n"
RIGHT = "She has two brothers.\n\n  I have a dog; see 12/03/2021.\n"
MT = SHIPPED["mt"].folder


def test_texts_of_the_command_line_get_a_line_each_and_what_is_not_decoded_is_said_on_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    word = "abcdefghij" * 100
    aggdec(["correct", "She have two brother.", f"She is here. I has a dog. {word}"])
    printed = capsys.readouterr()
    assert printed.out == f"She has two brothers.\nShe is here. I have a dog. {word}\n"
    assert "too long" in printed.err
    assert printed.err.count("\n") == 1


def test_texts_of_the_command_line_take_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    aggdec(["correct", "She have two brother."])


def test_files_and_the_standard_input_come_back_with_every_line_break(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "letter").write_bytes(TEXT.replace("\n", "\r\n").encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"I has a dog.")))
    aggdec(["correct", "--input", str(tmp_path / "letter"), "-"])
    assert capsys.readouterr().out == RIGHT.replace("\n", "\r\n") + "I have a dog."


def test_json_gives_offsets(capsys: pytest.CaptureFixture[str]) -> None:
    aggdec(["correct", "--json", "😀 She have two brother."])
    found = json.loads(capsys.readouterr().out)
    assert found["text"] == "😀 She has two brothers."
    assert found["edits"][0] == {"offset": 6, "length": 4, "replacement": "has"}
    assert [sentence["source"] for sentence in found["sentences"]] == [
        "😀 She have two brother."
    ]


def test_translation_by_the_shipped_model_and_by_ones_own_is_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    aggdec(["translate", "Where do you live?\nI live in Berlin."])
    shipped = capsys.readouterr().out
    assert shipped == "Wo wohnt ihr?\nIch wohne in Berlin.\n"
    own = f"translate --path {MT}/model.pt -s en -t de --tokenizer moses --moses-no-escape --mode greedy"
    aggdec([*own.split(), "Where do you live?\nI live in Berlin."])
    assert capsys.readouterr().out == shipped


def test_a_closed_pipe_is_no_error() -> None:
    program = (
        "from fairseq_aggdec.cli.verbs import main; main(['correct', *['a.'] * 300])"
    )
    command = f'{sys.executable} -c "{program}" | head -n 1'
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        capture_output=True,
        text=True,
        env=os.environ,
    )
    assert (done.returncode, done.stderr) == (0, "")
