from configs.gec_small.errors.clean_text import is_modern, is_prose, repair_quotes

PROSE = (
    "Is this the well-known club (the old one)?",
    'He said: "It cost 20 dollars!"',
    "The caf\u00e9 was closed.",
)
NO_PROSE = (
    "Too short.",
    "it starts in lower case and is long enough.",
    "It has no final mark",
    "The value of foo_bar is used here.",
    "You call os.path to see what it is.",
    "Journal of Things, see http://example.org for what is there.",
    "The years were 1999, 2000, 2001, 2002 and 2003.",
    "Positive airway pressure for sleep apnoea.",  # a title: no clause
    "This is \u4e2d\u6587 text.",
)


def test_repair_quotes() -> None:
    assert repair_quotes('He said "yes" twice.') == 'He said "yes" twice.'
    assert repair_quotes('"This was cut off.') == "This was cut off."
    assert repair_quotes('This is " odd.') is None


def test_prose_is_kept_and_other_text_dropped() -> None:
    assert [sentence for sentence in PROSE + NO_PROSE if is_prose(sentence)] == list(PROSE)


def test_modern() -> None:
    known = {"she", "was", "in", "the", "room", "said"}
    assert is_modern("She was in the room.", known)
    assert not is_modern("She was in the antechamber.", known)
    assert is_modern("She was in the antechamber.", known, max_unknown=1)
    for old in ("Thou was in the room.", "'Tis in the room.", "She was in the room; the room was in."):
        assert not is_modern(old, known), old
