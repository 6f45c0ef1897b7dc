"""Characters that clean prose does not have."""

from __future__ import annotations

from random import Random

from fairseq_aggdec.data.corruption import CorruptionConfig, Corruptor
from fairseq_aggdec.data.lexicon import build_lexicon
from fairseq_aggdec.data.unusual import with_unusual
from fairseq_aggdec.writing.characters import PUNCTUATION, plain

CLEAN = 'On Monday he said "I don\'t know" to Tom and paid 20 dollars - really...'


def unreadable(text: str) -> list[str]:
    return [c for c in text if not c.isspace() and plain(c) != c and c not in PUNCTUATION]


def test_every_sentence_gets_some_and_keeps_most_of_its_words() -> None:
    sentences = [with_unusual(CLEAN, Random(seed)) for seed in range(300)]
    assert all(map(unreadable, sentences))
    made = set("".join(sentences))
    assert {"“", "’", "–", "…", "[", "{", "€", "•", "😀", "#", "_", "@", "м", "ω", "中"} <= made
    assert all(sum(word in sentence for word in CLEAN.split()) >= 6 for sentence in sentences)
    assert with_unusual(CLEAN, Random(7)) == with_unusual(CLEAN, Random(7))


def test_errors_leave_them_alone() -> None:
    """A corrupted sentence has the characters of the clean one, in their order, and errors elsewhere."""
    corruptor = Corruptor(build_lexicon({}), CorruptionConfig(error_rate=0.5, max_error_rate=1.0, keep_clean=0.0))
    errors = 0
    for seed in range(300):
        clean = with_unusual(CLEAN, Random(seed))
        wrong, made = corruptor.corrupt(clean, Random(seed))
        assert unreadable(wrong) == unreadable(clean)
        errors += len(made)
    assert errors > 300
