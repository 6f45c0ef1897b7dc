"""A text that grows: a session's results are those of a model without one, in fewer passes."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fairseq_aggdec import load
from fairseq_aggdec.demo.shipped import CAREFUL, SHIPPED
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.model import Model
from fairseq_aggdec.text.results import Result
from fairseq_aggdec.text.session import counterparts

MARIAN = Path(__file__).parents[1] / "hub/models"
TEXT = "I live in a small house. My brother has three “big” dogs and a cat."
GROWING = [
    *(TEXT[:end] for end in range(6, len(TEXT), 8)),
    TEXT,
    # in the middle, at the beginning, a sentence less, all of it gone, and back
    TEXT.replace("small", "very small"),
    f"Hello. We {TEXT[2:]}",
    TEXT[:24],
    " \n",
    f"{TEXT}\n\nWhere do you\nlive? {TEXT[:24]}",
]


@cache
def translator(**options: Any) -> Model:
    """The shipped translator without its drafter, as a model of ones own."""
    folder = SHIPPED["mt"].folder
    return load(
        folder / "model.pt",
        tokenizer="moses",
        moses_no_escape=True,
        moses_no_dash_splits=True,
        **options,
    )


def said(result: Result) -> list[Any]:
    """All of a result but scores and counters."""
    sentences = [
        (one.source, one.start, one.end, one.text, one.tokens, one.note)
        for one in result.sentences
    ]
    return [result.source, result.text, sentences, result.edits]


def passes(results: list[Result]) -> int:
    return sum(one.iterations for result in results for one in result.sentences)


@pytest.mark.parametrize(
    ("model", "options", "reads_drafts"),
    [
        (translator, {}, True),
        (translator, {"mode": "aggressive-beam", "nbest": 2}, False),
        (lambda: load.shipped("mt"), {}, False),
        (lambda: load.shipped("mt"), {"mode": "iad", "max_len_b": 40}, True),
        (lambda: load.shipped("gec"), {"mode": "iad"}, False),
        (lambda: load.shipped("gec"), CAREFUL, False),
    ],
    ids=["own", "own by beam", "mt", "mt by iad", "gec", "gec with care"],
)
def test_each_update_is_what_the_model_says_without_a_session(
    model: Callable[[], Model], options: dict[str, Any], reads_drafts: bool
) -> None:
    loaded = model()
    session = loaded.session(**options)
    assert session.reads_drafts is reads_drafts
    updates = [session.update(text) for text in GROWING]
    alone = [loaded.translate(text, **options) for text in GROWING]
    assert list(map(said, updates)) == list(map(said, alone))
    assert passes(updates) < passes(alone)


def test_a_sentence_that_changes_takes_few_passes_and_one_that_stays_takes_none() -> (
    None
):
    session = translator().session()
    first = session.update(TEXT)
    again = session.update(f"{TEXT[:-1]}, too. Hello.")
    house, dogs, _ = again.sentences
    assert (house.iterations, house.text) == (0, first.sentences[0].text)
    assert 0 < dogs.iterations < len(dogs.tokens) / 2
    assert dogs.accepted > len(dogs.tokens) / 2


def test_a_language_of_the_text_is_part_of_what_a_sentence_was(tmp_path: Path) -> None:
    from fairseq_aggdec.hub.importing import import_checkpoint

    import_checkpoint(MARIAN / "marian_multi", tmp_path / "multi")
    model = load.hub(tmp_path / "multi")
    texts = [
        ">>deu<< How are",
        ">>deu<< How are you? I am here.",
        ">>eng<< How are you? I am here.",
    ]
    for beam, reads_drafts in ((1, True), (2, False)):
        session = model.session(beam=beam)
        assert session.reads_drafts is reads_drafts
        for text in texts:
            assert said(session.update(text)) == said(model.decode(text, beam=beam))


def test_lossy_modes_read_no_drafts_and_unknown_options_are_refused_at_once() -> None:
    model = translator()
    assert [mode for mode in model.modes if model.reads_drafts(mode)] == [
        "iad",
        "aggressive",
    ]
    with pytest.raises(AggdecError, match="neither an option of Model"):
        model.session(lenpenalty=2)


def test_a_changed_sentence_was_the_one_that_began_most_like_it() -> None:
    before = ["A cat sat.", "A dog", "He goes home."]
    now = ["A dog sleeps.", "She goes home.", "A cat sits."]
    assert counterparts(before, now) == dict(
        zip(now, ["A dog", "He goes home.", "A cat sat."], strict=True)
    )
    assert counterparts([], now) == {}
