"""The sentences and errors that configs/mucgec_small makes up, with a small dictionary."""

import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from experiments.text_files import write_lines

from configs.mucgec_small.sentences import WordSentences, errors
from configs.mucgec_small.sentences.dictionary import read_words
from configs.mucgec_small.sentences.homophones import Homophones
from tests.configs.experiments.preparing import experiment, prepare

LINES = """
我 300 r
他们 90 r
学生 50 n
老师 40 n
问题 60 n
鼐 9 n
齤人 9 n
中华人民共和国 99 n
AA制 9 n
喜欢 40 v
学习 50 v
研究 20 vn
新 50 a
容易 30 a
突然 30 ad
经常 60 d
从 90 p
虽然 30 c
个 99 q
里 90 f
现在 50 t
心里 20 s
北京 60 ns
英语 20 nz
自言自语 9 i
涓 99 zg
""".strip().splitlines()
"""A small dictionary in the layout of jieba's, with words of every class that sentences are made of."""
WORDS = read_words(LINES, "dict.txt")


def test_pairs_depend_on_their_number_and_the_seed() -> None:
    made = list(WordSentences(60).pairs(WORDS))
    assert len(made) == 60
    assert list(WordSentences(30).pairs(WORDS)) == made[:30]
    assert list(WordSentences(30, seed=2).pairs(WORDS)) != made[:30]
    wrong = [source for source, target in made if source != target]
    assert 20 < len(wrong) < 60
    assert all(
        source == target
        for source, target in WordSentences(30, error_rate=0).pairs(WORDS)
    )


def test_the_errors_of_each_kind() -> None:
    text = "我在北京学习，他们也喜欢学习的。"
    sounds = {character: [character] for character in text if character not in "，。"}
    homophones = Homophones({}, {**sounds, "再": ["在"]})

    def made(edit: errors.Edit) -> set[str]:
        lines = []
        for seed in range(100):
            characters = list(text)
            edit(characters, homophones, Random(seed))
            lines.append("".join(characters))
        return {*lines} - {text}

    assert made(errors.confused) == {"我再北京学习，他们也喜欢学习的。"}
    omitted = made(errors.omitted)
    swapped = made(errors.swapped)
    assert min(len(omitted), len(swapped)) > 5
    assert all(
        len(line) < len(text) and line.count("，") == line.count("。") == 1
        for line in omitted
    )
    assert all(sorted(line) == sorted(text) and line[6] == "，" for line in swapped)


@pytest.fixture
def small_dictionary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What seems to be installed as jieba."""
    write_lines(tmp_path / "jieba/dict.txt", LINES)
    write_lines(tmp_path / "jieba/__init__.py", [])
    monkeypatch.delitem(sys.modules, "jieba", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("small_dictionary")
def test_from_words_to_binary(tmp_path: Path) -> None:
    """The experiment's own configuration with few lines, a small dictionary and test set."""
    test = [
        "1\t我喜换学习鼐。\t我喜欢学习鼐。\t我很喜欢学习鼐。",
        "2\t好 。\t没有错误",
        "3\t齤。\t无法标注",
    ]
    write_lines(tmp_path / "mucgec-dev/MuCGEC_dev.txt", test)
    module = experiment("mucgec_small", HELD_OUT={"valid": 20})
    work = tmp_path / "work"
    vars(module)["SENTENCES"] = WordSentences(lines=220, another_sentence=0.5)
    prepare(module, tmp_path, work)

    def lines(name: str) -> list[str]:
        return (work / name).read_text().splitlines()

    assert lines("tok/test.src") == ["我 喜 换 学 习 鼐 。", "好 。"]
    assert (
        lines("tok/test.ref0")
        == lines("bpe/test.tgt")
        == ["我 喜 欢 学 习 鼐 。", "好 。"]
    )
    # the last again
    assert lines("tok/test.ref1") == [
        "我 很 喜 欢 学 习 鼐 。",
        "好 。",
    ]
    assert not (work / "tok/test.ref2").exists()
    assert len(lines("text/train.src")) == len(lines("text/train.tgt")) <= 200
    counts = Counter(
        token
        for side in ("src", "tgt")
        for line in lines(f"bpe/train.{side}")
        for token in line.split()
    )
    dictionary = dict(line.split() for line in lines("data-bin/dict.src.txt"))
    assert {token for token in dictionary if not token.startswith("madeupword")} == {
        token for token, count in counts.items() if count >= 10
    }
    assert min(counts.values()) < 10  # the model sees the unknown token
