from random import Random

from configs.mucgec_small.sentences.dictionary import read_words
from configs.mucgec_small.sentences.grammar import SentenceMaker
from tests.configs.mucgec_small.small_dictionary import LINES

WORDS = read_words(LINES, "dict.txt")


def test_sentences_are_within_their_lengths_and_end() -> None:
    maker = SentenceMaker(WORDS, min_words=4, max_words=9)
    sentences = [maker.sentence(Random(seed)) for seed in range(300)]
    assert {sentence[-1] for sentence in sentences} == {"。", "？", "！"}
    assert all(4 <= len(sentence) <= 9 + 2 for sentence in sentences)  # with 吗？
    assert any("，" in sentence for sentence in sentences)
    assert not any(sentence[-2] in "，；：" for sentence in sentences)
    text = "".join(word for sentence in sentences for word in sentence)
    assert all(word in text for word in ("学生", "的", "了", "我", "喜欢"))
    assert not [letter for letter in text if letter.isascii() and not letter.isdigit()]  # no symbol is left over


def test_a_line_depends_on_the_seed_alone() -> None:
    maker = SentenceMaker(WORDS)
    lines = [maker.line(Random(seed), another=0.5) for seed in range(50)]
    assert lines == [SentenceMaker(WORDS).line(Random(seed), another=0.5) for seed in range(50)]
    assert len({tuple(line) for line in lines}) == 50
