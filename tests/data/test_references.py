import pytest

from fairseq_aggdec.data.references import CorrectedSentence, read_corrections, reference_columns
from fairseq_aggdec.errors import AggdecError


def test_corrections() -> None:
    lines = [
        "1\t他去学。\t他去上学。\t他去学校。",
        "2\t好。\t没有错误\t很好。",  # an annotator found no error
        "3\t实际的孤独。\t无法标注",  # nobody knows what is meant
        "4\t 很大 。\t\t很大。",
    ]
    assert list(read_corrections(lines, "dev.txt")) == [
        CorrectedSentence("他去学。", ["他去上学。", "他去学校。"]),
        CorrectedSentence("好。", ["好。", "很好。"]),
        CorrectedSentence("很大 。", ["很大。"]),
    ]
    with pytest.raises(AggdecError, match=r"dev.txt, line 2: number, sentence and corrections are expected"):
        list(read_corrections(["1\ta\tb", "1\t好。"], "dev.txt"))


def test_the_columns_of_sentences_with_several_references() -> None:
    columns = reference_columns([["a"], ["b", "c", "d"], ["e", "f"]])
    assert columns == [["a", "b", "e"], ["a", "c", "f"], ["a", "d", "f"]]
