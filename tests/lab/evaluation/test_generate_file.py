from pathlib import Path

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
