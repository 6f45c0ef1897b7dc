from pathlib import Path

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.score.reference_set import read_outputs, read_reference_set

M2 = "S a b\nA 0 1|||x|||y|||REQUIRED|||-NONE-|||0\n\nS c\n"


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def test_what_does_not_belong_together_is_named(tmp_path: Path) -> None:
    sources, m2 = write(tmp_path / "src", "a b", "d"), write(tmp_path / "m2", M2)
    with pytest.raises(
        AggdecError, match=r"sentence 2 of .*m2 is 'c', but line 2 of .*src is 'd': .* M2 file's tokens"
    ):
        read_reference_set(sources, m2=m2)
    with pytest.raises(AggdecError, match=r"src has 2, .*ref has 1; they must belong together"):
        read_reference_set(sources, [write(tmp_path / "ref", "a")])


def test_outputs_a_sentence_a_line_or_of_fairseq_generate(tmp_path: Path) -> None:
    path = write(tmp_path / "lines", "a b", "", "c")
    assert read_outputs(path, 3) == {0: ["a", "b"], 1: [], 2: ["c"]}
    with pytest.raises(AggdecError, match="lines: has 3 lines, but the test set has 4"):
        read_outputs(path, 4)
    path = write(
        tmp_path / "out", "S-2\tx", "H-2\t-1\ta@@ b c", "P-2\t0 0 0 0", "H-0\t-1\td", "H-0\t-2\tworse", "Generate test"
    )
    assert read_outputs(path, 3) == {0: ["d"], 2: ["ab", "c"]}
    assert read_outputs(path, 3, join=str.upper)[2] == ["A@@", "B", "C"]
    with pytest.raises(AggdecError, match="has a sentence 2, but the test set has 2, counted from 0"):
        read_outputs(path, 2)
