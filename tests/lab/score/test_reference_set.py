from pathlib import Path

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.score.reference_set import read_outputs, read_reference_set


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def test_outputs_a_sentence_a_line_or_of_fairseq_generate(tmp_path: Path) -> None:
    path = write(tmp_path / "lines", "a b", "", "c")
    assert read_outputs(path, 3) == {0: ["a", "b"], 1: [], 2: ["c"]}
    with pytest.raises(AggdecError, match="lines: has 3 lines, but the test set has 4"):
        read_outputs(path, 4)
    with pytest.raises(AggdecError, match=r"lines has 3, .*ref has 1; they must belong together"):
        read_reference_set(path, [write(tmp_path / "ref", "a")])
    path = write(
        tmp_path / "out", "S-2\tx", "H-2\t-1\ta@@ b c", "P-2\t0 0 0 0", "H-0\t-1\td", "H-0\t-2\tworse", "Generate test"
    )
    assert read_outputs(path, 3) == {0: ["d"], 2: ["ab", "c"]}
    assert read_outputs(path, 3, join=str.upper)[2] == ["A@@", "B", "C"]
    with pytest.raises(AggdecError, match="has a sentence 2, but the test set has 2, counted from 0"):
        read_outputs(path, 2)
