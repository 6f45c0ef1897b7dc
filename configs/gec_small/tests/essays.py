"""A few sentences with places for every kind of error, and all that an edit makes of a sentence."""

from collections import Counter
from functools import cache
from random import Random

from configs.gec_small.errors.corruption import EDITS
from configs.gec_small.errors.lexicon import Lexicon, build_lexicon
from configs.gec_small.errors.sentence import NoPlaceError, Sentence

ESSAY = (
    "However, the teachers are always helping their students, and they want to improve the quality of education.",
    "I have many friends in London who don't like the weather, but the city has beautiful parks.",
    "Sometimes people think that it is easier to spend money than to save it: this is a serious problem.",
    "For example, the government should give more information about the environment to young children.",
    "She was in front of the well-known museum at 12 o'clock; her brother's car was quickly moving away.",
)


@cache
def essay_lexicon() -> Lexicon:
    """The tables of the essay's words and a few more."""
    words = Counter(word for line in ESSAY * 5 for word in line.lower().split())
    return build_lexicon(
        {**words, "from": 9, "form": 8, "improve": 4, "quickly": 4, "quick": 4}
    )


def outcomes(edit: str, text: str) -> set[str]:
    """All that an edit makes of a text over many seeds; empty where it finds no place."""
    found = set()
    for seed in range(400):
        sentence = Sentence(text, essay_lexicon(), Random(seed))
        try:
            EDITS[edit][0](sentence)
            found.add(sentence.text())
        except NoPlaceError:
            assert sentence.text() == text, "without a place nothing must change"
    return found
