"""Sentences of pasted texts, and parts of sentences that are too long."""

import random
import time

import pytest

from fairseq_aggdec.text.sentences import cut_at_clauses, has_words, split_text


def sentences(text: str, language: str = "en") -> list[str]:
    return [text[start:end] for start, end in split_text(text, language)]


def check_that_no_words_are_between(text: str, spans: list[tuple[int, int]]) -> None:
    position = 0
    for start, end in spans:
        assert not has_words(text[position:start])
        assert start < end
        assert text[start:end] == text[start:end].strip()
        position = end
    assert not has_words(text[position:])


@pytest.mark.parametrize(
    "text",
    [
        "She have two brother.|  We was there.| he come too.",
        "Dr. Smith lives in the U.S. and pays $3.50, e.g. for No. 5.| He stays.",
        "J. K. Rowling wrote it.| I waited ... and left.",
        '"Go!" he said.| She came (she was late).| “Stay.”| They did.',
        "Mail me@x.org or see https://x.org/a.html?b=1 now.| Really?!| Yes \U0001f600.",
        "1. a thing|\n2. Another thing.|\nc) It is long.| It ends.",
        "Tabs.|\tNo-break.|\u00a0Two spaces.|  \r\n\r\nA paragraph",
        "Dear Sir,|\nI want to ask you|\nwhen we meet.",
        'He left. "| People talk.',
    ],
)
def test_english(text: str) -> None:
    assert sentences(text.replace("|", "")) == [
        part.strip() for part in text.split("|")
    ]


@pytest.mark.parametrize(
    "language, text",
    [
        (
            "de",
            "Das 19. Jahrhundert war z. B. lang.|Am 1. Mai kam Dr. Müller.|„Geh!“, sagte er.",
        ),
        ("es", "¿Qué tal?|¡Bien!"),
        ("src", "No code of a language.|It splits."),
    ],
)
def test_other_languages(language: str, text: str) -> None:
    assert sentences(text.replace("|", " "), language) == text.split("|")
    assert sentences("你好。我很好！", "zh") == ["你好。", "我很好！"]


def test_a_sentence_goes_on_in_the_next_line_of_wrapped_mail() -> None:
    wrapped = "Thank you very much for the long letter that you has send me\nlast week. I were happy."
    assert sentences(wrapped) == [wrapped[:71], "I were happy."]
    assert sentences(wrapped.replace("\n", "\r\n"))[1:] == ["I were happy."]


@pytest.mark.parametrize(
    "following",
    ["b) last week.", "- last week.", "Last week.", "> last week.", "\nlast week."],
)
def test_a_list_item_a_capital_and_a_blank_line_begin_a_sentence(
    following: str,
) -> None:
    line = "Thank you very much for the long letter that you has send me"
    assert sentences(f"{line}\n{following}") == [line, following.strip()]


def test_no_character_is_lost_of_any_text() -> None:
    chooser = random.Random(1)
    short = 'Dr.|a|The|(|"|”|...|1.|\U0001f600| |\u00a0|.|,|;|\n|\r\n|\u2028|\x85|\x1c|\x00|\u200b|e\u0301|\ud800|。'
    pieces = [*short.split("|"), "a long line that " * 4]
    for _ in range(2000):
        text = "".join(chooser.choices(pieces, k=chooser.randint(0, 20)))
        check_that_no_words_are_between(text, split_text(text))
        sentence = f"A{text}."
        check_that_no_words_are_between(
            sentence, cut_at_clauses(sentence, lambda part: len(part) < 9)
        )


def seconds(text: str) -> float:
    """Of processor time, to split a text and to cut its sentences."""
    start = time.process_time()
    for first, last in split_text(text):
        cut_at_clauses(text[first:last], lambda part: len(part) < 600)
    return time.process_time() - start


@pytest.fixture(scope="module")
def plain() -> float:
    """Seconds that 256 KiB of ordinary sentences take."""
    return seconds("She went to school, and he stayed. " * (2**18 // 35))


@pytest.mark.parametrize(
    "part",
    ["word ", "a", "(", " ", " &language=en&username=", ".", "-", "'", '." ', "“a. ", "[a]. ", "1. ", "\n", "a\n\n",
     "```x\n", "```\na.\n```\nA b.\n", "你好。"],
)  # fmt: skip
def test_no_text_takes_time_that_grows_with_the_square_of_its_length(
    part: str, plain: float
) -> None:
    # today at most 6 times as long as plain text, and 30 on a busy machine; squares are thousands
    assert seconds(f"a{part * (2**18 // len(part.encode()))}b.a") < 200 * plain


def test_a_long_line_is_split_as_its_parts_are() -> None:
    line = (
        "He said: “We were there. We saw it.” (It was late.) Dr. Smith came, etc. "
        * 200
    )
    assert sentences(line) == sentences(line[:73]) * 200
    assert sentences(line.replace(".", ",")) == [line.replace(".", ",").strip()]


def cut(sentence: str, words: int) -> list[str]:
    return [
        sentence[start:end]
        for start, end in cut_at_clauses(
            sentence, lambda part: len(part.split()) <= words
        )
    ]


def test_a_long_sentence_is_cut_at_clauses() -> None:
    assert cut("It fits, as it is.", 5) == ["It fits, as it is."]
    assert cut("We came, we saw it all;  we won, and left.", 6) == [
        "We came, we saw it all;",
        "we won, and left.",
    ]
    assert cut("We came, we saw it all, and left again.", 6) == [
        "We came, we saw it all,",
        "and left again.",
    ]
    assert cut("We came to see it - and left it again.", 6) == [
        "We came to see it",
        "- and left it again.",
    ]
    assert cut('"One two. Three four," he said', 3) == [
        '"One two.',
        'Three four,"',
        "he said",
    ]
    assert cut("one two three four", 3) == ["one two", "three four"]


def test_a_word_that_does_not_fit_is_a_part() -> None:
    word = "a" * 50
    spans = cut_at_clauses(f"Say {word} now", lambda part: len(part) < 9)
    assert spans == [(0, 3), (4, 54), (55, 58)]
