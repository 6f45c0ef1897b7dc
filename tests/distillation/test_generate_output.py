from pathlib import Path

import pytest

from fairseq_aggdec.distillation.generate_output import GenerateOutput
from fairseq_aggdec.errors import AggdecError

BAR = "\r 12%|█▎        | 5/41 [00:02<00:18,  1.95it/s, wps=413]"


def read(tmp_path: Path, text: str | bytes) -> GenerateOutput:
    path = tmp_path / "generate.txt"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    output = GenerateOutput()
    output.add_file(path)
    return output


def hypotheses(tmp_path: Path, text: str | bytes) -> dict[int, list[list[str]]]:
    return {number: sentence.hypotheses for number, sentence in read(tmp_path, text).sentences.items()}


def test_plain_lines(tmp_path: Path) -> None:
    lines = "S-3\ta b\nT-3\tx\nH-3\t-0.25\tA B@@ c\nD-3\t-0.25\tA Bc\nP-3\t-1 -2 -3 -4\n"
    output = read(tmp_path, lines + "S-0\t\nH-0\t0\t\n")
    assert list(output.sentences) == [3, 0]
    three = output.sentences[3]
    assert three.place.endswith("generate.txt, line 1")
    assert (three.sources, three.hypotheses, [*three.scores[0]]) == ([["a b"]], [["A B@@ c"]], [4])
    assert three.totals == [-0.25]
    assert not three.mended
    assert output.sentences[0].hypotheses == [[""]]


@pytest.mark.parametrize("before", [BAR, BAR + BAR + "\r          \r", "2026-01-01 12:00:00 | INFO | fairseq | "])
def test_a_line_behind_a_bar_is_found(tmp_path: Path, before: str) -> None:
    output = read(tmp_path, f"S-1\ta\n{before}H-12\t-0.5\ta b\r\nP-12\t-1 -1 -1\n")
    assert output.sentences[12].hypotheses == [["a b"]]
    assert output.sentences[12].mended


def test_a_bar_within_a_line_leaves_two_readings(tmp_path: Path) -> None:
    assert hypotheses(tmp_path, f"H-12\t-0.5\tone tw{BAR}o\n") == {12: [["one two", "one tw o"]]}
    assert hypotheses(tmp_path, f"H-12\t-0.5\tone{BAR}  two\n") == {12: [["onetwo", "one two"]]}
    assert hypotheses(tmp_path, f"H-1{BAR}2\t-0.5\ttwo\n") == {12: [["two"]]}
    assert hypotheses(tmp_path, f"H-12\t-0.{BAR}5\ttwo\n") == {12: [["two"]]}


def test_files_without_hypotheses_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AggdecError, match="holds no H- lines"):
        read(tmp_path, "S-1\ta\n")
