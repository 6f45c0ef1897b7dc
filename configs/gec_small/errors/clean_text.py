"""Chooses clean modern English sentences out of raw text, for synthetic correction data.

Books, papers and web text have typographic characters, references, code and archaic speech. A corrector that is trained
on them would learn to write them. So a sentence is first normalised, and then kept or dropped as a whole.
"""

import re
from collections.abc import Collection, Iterable

from experiments.words import normalise

# Letters (accented ones too, so that the subword alphabet knows them), digits and the marks of ordinary prose.
_PROSE = re.compile(r"[A-Za-z\u00c0-\u024f0-9 .,;:!?'\"()\-/%$&+\u00a3\u20ac\u00b0]+")
_SENTENCE = re.compile(r"[\"'(]?[A-Z\u00c0-\u00de0-9].*[.!?][\"')]*")
_REFERENCE = re.compile(
    r"\(\s*\)|\(\d{4}[a-z]?\)\.|\bdoi\b|https?:|www\.|\bpp\.|\bvol\.|\bed\.\)|\bEds?\.|, [A-Z]\. ?[A-Z]?\.?,|"
    r"\w\(\)|\.\w+\(|\w/\w+/",
    re.IGNORECASE,
)
_ARCHAIC = re.compile(
    r"\b(?:thou|thee|thy|thine|hath|doth|ye|hast|art thou|o'er|ere|unto|whence|thence|hither|thither|wherefore|"
    r"methinks|prithee|nay|aye|quoth|shalt|wilt|'?tis|'?twas|ain't|o'|th'|'em|afore|upon|whilst|alas)(?!\w)",
    re.IGNORECASE,
)
_DIALECT = re.compile(
    r"(?:^|\s)'\w|[.,!?]'|\w'(?=\s\w)(?<!s')|\w'(?!s\b|t\b|re\b|ve\b|ll\b|d\b|m\b)\w",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"[a-z][A-Z]|[A-Za-z]\.[a-z]{2}|[A-Za-z]\d|\d[A-Za-z]{3}")
_CLAUSE = re.compile(
    r"\b(?:am|is|are|was|were|be|been|has|have|had|do|does|did|can|cannot|could|will|would|may|might|shall|should|must|"
    r"I|we|you|he|she|it|they|this|that|there|who|what|when|how|let)\b|'(?:s|re|ve|ll|m|d)\b|n't\b|\w{2}ed\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z\u00c0-\u024f']+")
_MIN_WORDS = 3
_MAX_WORDS = 45


def repair_quotes(line: str) -> str | None:
    """Removes a single quotation mark that a sentence splitter has left; returns None where that is impossible."""
    if line.count('"') % 2 == 0:
        return line
    if line.count('"') == 1 and (line.startswith('"') or line.endswith('"')):
        return line.strip('" ')
    return None


def is_prose(line: str) -> bool:
    """Whether a normalised line is one sentence of ordinary prose: no code, reference, heading or fragment."""
    words = line.split()
    if not _MIN_WORDS <= len(words) <= _MAX_WORDS:
        return False
    if (
        not _PROSE.fullmatch(line)
        or not _SENTENCE.fullmatch(line)
        or _REFERENCE.search(line)
    ):
        return False
    # titles and list items have no clause; names of programs and files are no English words
    if not _CLAUSE.search(line) or _IDENTIFIER.search(line):
        return False
    letters = [character for character in line if character.isalpha()]
    upper = sum(character.isupper() for character in letters)
    digits = sum(character.isdigit() for character in line)
    return (
        len(letters) >= 0.6 * len(line)
        and upper <= 0.25 * len(letters) + 1
        and digits <= 0.1 * len(line)
    )


def lower_case_words(line: str) -> set[str]:
    """The words written in lower case; words with a capital may be names."""
    return {word for word in _WORD.findall(line) if word.islower()}


def is_modern(line: str, known_words: Collection[str], max_unknown: int = 0) -> bool:
    """Whether a sentence of older fiction reads like modern prose.

    It must have no archaic or dialect form, no semicolon and no dash (rare in essays, common in Victorian fiction), and
    at most `max_unknown` lower-case words that are not in `known_words`, the vocabulary of modern texts.
    """
    if ";" in line or " - " in line or _ARCHAIC.search(line) or _DIALECT.search(line):
        return False
    return (
        sum(word not in known_words for word in lower_case_words(line)) <= max_unknown
    )


def clean_sentences(lines: Iterable[str]) -> Iterable[str]:
    """Yields the lines that are prose, normalised."""
    for line in lines:
        sentence = repair_quotes(normalise(line))
        if sentence is not None and is_prose(sentence):
            yield sentence
