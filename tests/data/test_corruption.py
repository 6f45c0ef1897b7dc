"""The error synthesiser: each type makes the error it names, and the whole is deterministic and leaves text whole."""

from __future__ import annotations

import itertools
import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_aggdec.data.corruption import (
    DEFAULT_WEIGHTS,
    EDITS,
    CorruptionConfig,
    CorruptionConfigError,
    Corruptor,
    line_seed,
)
from fairseq_aggdec.data.corruption_stream import InvalidTextError, bounded_map, chunks, corrupt_stream
from fairseq_aggdec.data.lexicon import Lexicon, build_lexicon
from fairseq_aggdec.data.sentence import Sentence, match_case

ESSAY = (
    "However, the teachers are always helping their students, and they want to improve the quality of education.",
    "I have many friends in London who don't like the weather, but the city has beautiful parks.",
    "Sometimes people think that it is easier to spend money than to save it: this is a serious problem.",
    "For example, the government should give more information about the environment to young children.",
    "She was in front of the well-known museum at 12 o'clock; her brother's car was quickly moving away.",
)


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    words = Counter(word for line in ESSAY * 5 for word in line.lower().split())
    return build_lexicon({**words, "from": 9, "form": 8, "improve": 4, "quickly": 4, "quick": 4})


def outcomes(lexicon: Lexicon, name: str, text: str, draws: int = 400) -> set[str]:
    """All that one edit makes of a text over many seeds."""
    found = set()
    for seed in range(draws):
        sentence = Sentence(text)
        before = sentence.text()
        made = EDITS[name][0](sentence, lexicon, Random(seed))
        if made:
            found.add(sentence.text())
        else:
            assert sentence.text() == before, "an edit that reports nothing made must change nothing"
    return found


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("article", "He bought the car.", "He bought car."),
        ("article", "He saw a dog in the park.", "He saw the dog in the park."),
        ("article", "The dog sleeps.", "Dog sleeps."),
        ("article", "We like student life.", "We like the student life."),
        ("preposition", "We live in London.", "We live at London."),
        ("preposition", "We listen to music.", "We listen music."),
        ("preposition", "They discuss problems.", "They discuss about problems."),
        ("noun_number", "Two cars came.", "Two car came."),
        ("noun_number", "The children came.", "The childrens came."),
        ("noun_number", "He gave advice.", "He gave advices."),
        ("agreement", "They are late.", "They is late."),
        ("agreement", "He has time.", "He have time."),
        ("agreement", "She likes it.", "She like it."),
        ("agreement", "They like it.", "They likes it."),
        ("verb_form", "He wants to go.", "He wants to going."),
        ("verb_form", "He bought it.", "He buyed it."),
        ("verb_form", "They are playing.", "They playing."),
        ("verb_form", "We can help.", "We can to help."),
        ("word_form", "He ran quickly.", "He ran quick."),
        ("word_form", "It is easier.", "It is more easier."),
        ("word_form", "It was a success.", "It was a succeed."),
        ("pronoun", "She likes him.", "She likes his."),
        ("quantifier", "There are many cars.", "There are much cars."),
        ("homophone", "They lost their car.", "They lost there car."),
        ("connective", "On the other hand, it rains.", "In the other hand, it rains."),
        ("spelling", "It is because of you.", "It is becuase of you."),
        ("real_word", "It came from Rome.", "It came form Rome."),
        ("comma_deletion", "First, we ate.", "First we ate."),
        ("comma_insertion", "I said that he left.", "I said, that he left."),
        ("final_mark", "We ate.", "We ate"),
        ("sentence_mark", "We ate; he left.", "We ate, he left."),
        ("apostrophe", "I don't know.", "I dont know."),
        ("capital", "We met in London.", "we met in London."),
        ("capital", "We met in London.", "We met in london."),
        ("spacing", "There is a lot of rain.", "There is alot of rain."),
        ("spacing", "It rains sometimes.", "It rains some times."),
        ("spacing", "After rain, sun.", "After rain,sun."),
        ("spacing", "He has 12 years.", "He has 12years."),
        ("word_deletion", "I know that it is.", "I know it is."),
        ("word_insertion", "I think they left.", "I think that they left."),
        ("word_swap", "He is not here.", "He not is here."),
    ],
)
def test_each_type_makes_the_error_it_names(lexicon: Lexicon, name: str, text: str, expected: str) -> None:
    assert expected in outcomes(lexicon, name, text)


@pytest.mark.parametrize("name", list(EDITS))
def test_each_type_alone_changes_essays_and_nothing_else_is_reported(lexicon: Lexicon, name: str) -> None:
    corruptor = Corruptor(lexicon, CorruptionConfig(error_rate=0.2, keep_clean=0, weights={name: 1.0}))
    made = Counter[str]()
    for number, text in enumerate(ESSAY * 40):
        wrong, types = corruptor.corrupt_line(text, 5, number)
        assert (wrong != text) == bool(types)
        made.update(types)
    assert set(made) == {name}


def test_agreement_leaves_infinitives_alone(lexicon: Lexicon) -> None:
    assert not outcomes(lexicon, "agreement", "You should have time.")


def test_names_and_unknown_words_are_not_misspelt() -> None:
    lexicon = build_lexicon({f"word{chr(97 + i % 26)}{chr(97 + i // 26)}": 9 for i in range(2100)} | {"common": 9})
    assert not outcomes(lexicon, "spelling", "A Zbigniew xylomatic.")
    assert outcomes(lexicon, "spelling", "A common.")


def test_error_rate_zero_changes_nothing(lexicon: Lexicon) -> None:
    corruptor = Corruptor(lexicon, CorruptionConfig(error_rate=0, keep_clean=0))
    assert all(corruptor.corrupt_line(text, 1, i) == (text, []) for i, text in enumerate(ESSAY * 20))


def test_share_kept_clean(lexicon: Lexicon) -> None:
    # A rate this high leaves no sentence without an error, so that only the kept ones are unchanged.
    corruptor = Corruptor(lexicon, CorruptionConfig(0.3, 0, 0.3, keep_clean=0.25))
    unchanged = sum(not corruptor.corrupt_line(ESSAY[i % 5], 3, i)[1] for i in range(4000))
    assert 0.22 < unchanged / 4000 < 0.28  # 4 standard deviations


def test_errors_grow_with_the_rate_up_to_the_bound(lexicon: Lexicon) -> None:
    def errors(rate: float, bound: float) -> float:
        corruptor = Corruptor(lexicon, CorruptionConfig(rate, 0.0, bound, 0))
        words = sum(len(Sentence(ESSAY[i % 5]).words) for i in range(1000))
        return sum(len(corruptor.corrupt_line(ESSAY[i % 5], 3, i)[1]) for i in range(1000)) / words

    assert errors(0.05, 1) == pytest.approx(0.05, rel=0.1)
    assert errors(0.15, 1) == pytest.approx(0.15, rel=0.1)
    assert errors(0.5, 0.1) == pytest.approx(0.1, rel=0.1)


def test_weights_choose_the_types(lexicon: Lexicon) -> None:
    corruptor = Corruptor(lexicon, CorruptionConfig(weights={"article": 1, "spelling": 3, "capital": 0}))
    made = Counter(kind for i in range(600) for kind in corruptor.corrupt_line(ESSAY[i % 5], 1, i)[1])
    assert set(made) == {"article", "spelling"}
    assert made["spelling"] > 1.5 * made["article"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"error_rate": 1.5}, "error-rate"),
        ({"error_rate": float("nan")}, "error-rate"),
        ({"keep_clean": -0.1}, "keep-clean"),
        ({"weights": {"speling": 1.0}}, "'speling'"),
        ({"weights": {"spelling": -1.0}}, "negative"),
        ({"weights": {"spelling": float("inf")}}, "finite"),
        ({"weights": {"spelling": 0.0}}, "above 0"),
    ],
)
def test_bad_options_are_named(options: dict[str, float], message: str) -> None:
    with pytest.raises(CorruptionConfigError, match=message):
        CorruptionConfig(**options)  # type: ignore[arg-type]


@settings(max_examples=150, deadline=None)
@given(
    text=st.text(
        st.one_of(st.sampled_from("abceisT ,.'’-12\u0301éßİ中😀"), st.characters(exclude_categories=["Cs"])),
        max_size=60,
    ),
    seed=st.integers(-(2**70), 2**70),
)
def test_any_text_survives(text: str, seed: int) -> None:
    text = " ".join(text.split())
    assert Sentence(text).text() == text
    corruptor = Corruptor(build_lexicon({}), CorruptionConfig(0.9, 0.0, 1.0, 0))
    wrong, made = corruptor.corrupt_line(text, seed, 1)
    assert (wrong, made) == corruptor.corrupt_line(text, seed, 1)
    assert "\n" not in wrong
    assert bool(wrong) == bool(text)
    assert wrong == " ".join(wrong.split())


def test_line_seeds_differ() -> None:
    assert len({line_seed(seed, line) for seed, line in itertools.product(range(30), range(1, 1000))}) == 30 * 999


@pytest.mark.parametrize(
    ("model", "word", "expected"),
    [("The", "a", "A"), ("NATO", "form", "FORM"), ("the", "a", "a"), ("", "a", "a"), ("Paris", "", "")],
)
def test_match_case(model: str, word: str, expected: str) -> None:
    assert match_case(model, word) == expected


def test_result_does_not_depend_on_workers(lexicon: Lexicon) -> None:
    lines = [f"{ESSAY[i % 5]} Naïve “quotes” № {i}.".encode() for i in range(230)]
    lines[17] = b"\r\n"
    corruptor = Corruptor(lexicon)
    runs = []
    for workers, size in ((1, 1000), (2, 7), (3, 20)):
        made = list(corrupt_stream(corruptor, lines, 4, workers=workers, chunk_size=size))
        runs.append((b"".join(c.source for c in made), b"".join(c.target for c in made), sum(c.empty for c in made)))
    assert runs[0] == runs[1] == runs[2]
    source, target, empty = runs[0]
    assert empty == 1
    assert source.count(b"\n") == target.count(b"\n") == 229
    assert b"".join(line + b"\n" for line in lines if line != b"\r\n") == target


def test_seed_changes_the_errors(lexicon: Lexicon) -> None:
    first, second = (
        b"".join(c.source for c in corrupt_stream(Corruptor(lexicon), [t.encode() for t in ESSAY], seed))
        for seed in (1, 2)
    )
    assert first != second


def test_invalid_utf8_names_file_and_line(lexicon: Lexicon) -> None:
    lines = [b"Fine.\n"] * 41 + [b"Caf\xe9.\n"]
    for workers in (1, 2):
        with pytest.raises(InvalidTextError, match=r"book\.txt, line 42: invalid UTF-8 at byte 4"):
            list(corrupt_stream(Corruptor(lexicon), lines, 1, "book.txt", workers, chunk_size=10))


def test_window_bounds_what_is_read_ahead() -> None:
    read = 0

    def items() -> Iterator[int]:
        nonlocal read
        for item in range(200):
            read += 1
            yield item

    def submit(item: int) -> Future[int]:
        future: Future[int] = Future()
        future.set_result(item)
        return future

    for expected, result in enumerate(bounded_map(submit, items(), window=8)):
        assert result == expected
        assert read - result <= 8
    assert read == 200


def test_workers_do_not_run_ahead_of_the_reader(lexicon: Lexicon) -> None:
    read = 0

    def lines() -> Iterator[bytes]:
        nonlocal read
        for _ in range(2000):
            read += 1
            yield b"A clean line.\n"

    stream = corrupt_stream(Corruptor(lexicon), lines(), 1, workers=2, chunk_size=10)
    next(stream)
    assert read <= 2 * 4 * 10
    assert sum(1 for _ in stream) == 199


def test_memory_does_not_grow_with_the_input(lexicon: Lexicon) -> None:
    def peak(lines: int) -> int:
        tracemalloc.start()
        for _ in corrupt_stream(Corruptor(lexicon), (ESSAY[i % 5].encode() for i in range(lines)), 1, chunk_size=100):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(300)
    assert peak(3000) < 1.3 * peak(500)


def test_chunks_number_lines_from_one() -> None:
    assert list(chunks([b"a", b"b", b"c"], 2)) == [(1, [b"a", b"b"]), (3, [b"c"])]


def test_importing_needs_neither_torch_nor_fairseq() -> None:
    import subprocess

    code = "import sys, fairseq_aggdec.cli.corrupt as c; sys.exit(bool({'torch', 'fairseq'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_default_mix_is_mostly_what_learners_do(lexicon: Lexicon) -> None:
    total = sum(DEFAULT_WEIGHTS.values())
    assert 0.2 < DEFAULT_WEIGHTS["spelling"] / total < 0.5
    # Noise that the rest of the sentence cannot undo stays rare.
    assert (DEFAULT_WEIGHTS["word_swap"] + DEFAULT_WEIGHTS["real_word"]) / total < 0.05
