from random import Random

import pytest

from configs.mucgec_small.sentences.dictionary import read_words
from fairseq_aggdec.errors import AggdecError
from tests.configs.mucgec_small.small_dictionary import LINES


def test_what_is_a_word() -> None:
    words = read_words(LINES, "dict.txt")
    known = {words.classes["n"](Random(seed)) for seed in range(200)}
    assert known == {"学生", "老师", "问题", "鼐"}  # not the rare 齤, nor what is long or not Chinese
    assert "zg" not in words.classes  # characters that nobody classified
    assert words.characters["学"] == 50 + 50  # in 学生 and 学习
    assert {words.containing["学"](Random(seed)) for seed in range(50)} == {"学生", "学习"}
    assert "鼐" in words.characters
    assert "鼐" not in words.containing  # of GB 2312's second level


def test_damaged_lines_are_named() -> None:
    with pytest.raises(AggdecError, match=r"dict.txt, line 2: word, count and class are expected"):
        read_words([LINES[0], "word x n"], "dict.txt")
