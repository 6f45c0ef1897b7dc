from pathlib import Path

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.evaluation.generate_file import read_generate_file

GENERATE = """S-1\tb@@ ad text
T-1\tgood text
H-1\t-0.25\tgood te@@ xt
D-1\t-0.25\tgood text
P-1\t-0.1 -0.2 -0.3 -0.4
S-0\tA - B
H-0\t-0.5\tA - B
H-0\t-0.7\tsecond best
S-2\t
H-2\t-1.0\t
Generate test with beam=1: BLEU4 = 1.00
"""


def test_sentences_by_number_with_the_best_hypothesis(tmp_path: Path) -> None:
    path = tmp_path / "generate-test.txt"
    path.write_text(GENERATE, encoding="utf-8")
    sentences = read_generate_file(path)
    assert list(sentences) == [0, 1, 2]
    assert (sentences[0].source, sentences[0].hypothesis, sentences[0].score) == ("A - B", "A - B", -0.5)
    assert (sentences[1].source, sentences[1].hypothesis) == ("b@@ ad text", "good te@@ xt")
    assert sentences[2].hypothesis == ""


def test_bars_among_and_within_lines(tmp_path: Path) -> None:
    """A recorded terminal: the same sentences."""
    bar = "\r  5%|▌         | 2/41 [00:01<00:18,  1.95it/s, wps=413]"
    path = tmp_path / "generate-test.txt"
    path.write_text(GENERATE, encoding="utf-8")
    expected = read_generate_file(path)
    text = GENERATE.replace("H-1", f"{bar}H-1").replace("S-0\tA", f"S-0{bar}\tA").replace("@@ xt", f"@@ x{bar}t", 1)
    path.write_text(text, encoding="utf-8")
    assert read_generate_file(path) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "holds no H- lines"),
        (b"H-0\t-0.5\ta\r 5%|#  | 2/41 [00:01<00:18] b\n", "line 1: a line of sentence 0 is damaged"),  # a b or ab
    ],
)
def test_damaged_files_are_named(tmp_path: Path, text: bytes, message: str) -> None:
    path = tmp_path / "generate-test.txt"
    path.write_bytes(text)
    with pytest.raises(AggdecError, match=rf"generate-test\.txt.*{message}"):
        read_generate_file(path)
