"""Checks of the shipped corrector's output: no changes of names, numbers, code and addresses, English alone."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from fairseq_aggdec.demo.word_list import (
    foreign,
    is_common,
    is_listed,
    is_name,
    is_near,
    words,
)
from fairseq_aggdec.text.edits import apply_edits, edits_of, find_edits, result_of
from fairseq_aggdec.text.results import Edit, Result, Sentence

_END = re.compile(r"[.!?…][\"'”’»)\]]*$")
_NOT_PROSE = re.compile(r"[\d_\\/@#<>{}\[\]=*+|~^$]|\w[:(]\w|\w\.[a-z]")
_CODE_SPAN = re.compile(r"`[^`]+`")
_MARK = re.compile(r"(?:[-#*+•|–—]|\(?\w{1,2}[.)]|\[.\])+\s")
"""the beginning of a list item or a title"""
_CELLS = re.compile(r"\t|\|| {2,}\S.* {2,}\S|\S[;,]\S+[;,]\S")
"""between the cells of a table's row; a sentence may have these, too"""
_CODE = re.compile(r"[_\\/@<>{}\[\]=|~^$]|\w\(|^--?\w|\w\.[a-z]|\w::")
_SIGN = re.compile(r"[^\w\s.,;:!?'’\"“”()-]|([^\w\s])\1")
_PAIRED = re.compile(r"[\"“”()\n]")
_FIRST_PERSON = re.compile(r"I(?:'\w+)?")
_NEGATION = re.compile(
    r"(?:not?|never|none|nobody|nothing|without|cannot|\w+n't)", re.IGNORECASE
)
_NUMBERS = frozenset(
    "two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty seventy eighty ninety "
    "hundred thousand million billion dozen half twice percent".split()
)


def checked(text: str, result: Result) -> Result:
    """The result of a text with those edits alone that the shipped corrector may be trusted with.

    A sentence of another language stays as it was, with a note.
    """
    sentences = list(map(_checked, result.sentences))
    return result_of(text, sentences, edits_of(sentences))


def _checked(one: Sentence) -> Sentence:
    is_decoded = one.iterations > 0
    if is_decoded and (reason := foreign(one.source)):
        return Sentence(one.source, one.start, one.end, one.source, note=reason)
    nbest = [
        replace(other, text=trusted(one.source, other.text)) for other in one.nbest
    ]
    return replace(one, text=trusted(one.source, one.text), nbest=nbest)


def trusted(source: str, output: str) -> str:
    """A sentence with the edits of its output that are kept."""
    return apply_edits(source, kept_edits(source, find_edits(source, output)))


def kept_edits(source: str, edits: list[Edit]) -> list[Edit]:
    """Return the edits of a sentence that a small model may be trusted with.

    None are kept of quoted mail, of a table's row, and of what does not end as a sentence does and is code, cells, or
    mostly names (a signature, a greeting, a headline). Dropped are edits of numbers, of words with signs of code,
    addresses or markup, of code between backticks, and those that `_is_trusted` refuses. Where the source does not end
    as a sentence does, an end that an edit adds to it is cut from the edit.
    """
    is_sentence = bool(_END.search(source))
    first = re.search(r"\w", source)
    # no edit of what is no prose
    if (
        first is None
        or source.startswith((">", "|"))
        or not (is_sentence or _is_fragment_of_prose(source))
    ):
        return []
    code = [found.span() for found in _CODE_SPAN.finditer(source)]
    takes_capital = is_sentence and not _MARK.match(source)
    kept = []
    for edit in edits:
        end = edit.end
        old = source[edit.offset : end]
        new = edit.replacement
        # a title gets no full stop
        if not is_sentence and new[-1:] in tuple(".!?") and new[-1:] != old[-1:]:
            new = new.rstrip(".!? ")
        in_code = any(
            start < max(end, edit.offset + 1) and edit.offset < stop
            for start, stop in code
        )
        is_first = edit.offset <= first.start() < end
        if (
            new != old
            and not in_code
            and not any(char.isdigit() for char in new)
            and not _NOT_PROSE.search(_chunk(source, edit.offset, end, new))
            and _is_trusted(old, new, is_first, is_sentence, takes_capital)
        ):
            kept.append(Edit(edit.offset, edit.length, new))
    return kept


def _is_fragment_of_prose(source: str) -> bool:
    found = words(source)
    chunks = _CODE_SPAN.sub("", source).split()
    is_code = 4 * len(list(filter(_CODE.search, chunks))) >= max(1, len(chunks))
    return (
        2 * sum(map(_is_capital, found)) < len(found)
        and not is_code
        and not _CELLS.search(source)
    )


def _is_trusted(
    old: str, new: str, is_first: bool, is_sentence: bool, takes_capital: bool
) -> bool:
    """Whether an edit does no visible harm.

    Every new word is in the list of words. Within a sentence, a word with a capital stays; an unknown word, and the
    first one, is replaced by a near spelling only. Negations, words for numbers, line breaks, quotation marks and
    brackets stay as many as they are.

    Args:
        old, new: the replaced part of the source, and its replacement.
        is_first: whether `old` has the source's first word.
        is_sentence: whether the source ends as a sentence does.
        takes_capital: whether its first word may get a capital.
    """
    was = words(old)
    now = words(new)
    gone = _added(now, was)
    came = _added(was, now)
    # no new signs, and quotation marks and brackets in pairs
    if _SIGN.search("".join(_added(old, new))) or _paired(old) != _paired(new):
        return False
    # the same numbers and negations, unless a misspelt word may have been one
    respaced = _letters(old) == _letters(new)  # "alot", "dont", and capitals
    unknown = [word for word in gone if not is_common(word)]
    if not respaced and (
        _held(gone) - _held(came) or (_held(came) - _held(gone) and not unknown)
    ):
        return False
    # names stay; an unknown word, and the first one, becomes a near spelling
    for word in gone:
        capital = _is_capital(word)
        if capital and not (is_first and word == was[0]):
            return False
        if respaced or not (capital or word in unknown):
            continue
        least = 0.65
        if word in unknown:
            least = 0.7 if is_sentence and not capital else 0.8
        if is_name(word) or not any(
            is_near(word, other, least) for other in (*came, "".join(came))
        ):
            return False
    # new words are listed, and have a capital at the beginning and as names alone
    for word in came:
        as_first = (
            is_first and word == now[0] and (takes_capital or _is_capital(was[0]))
        )
        as_name = (
            is_sentence
            and is_name(word)
            and any(is_near(word, other, 0.7) for other in gone)
        )
        if not is_listed(word) or (_is_capital(word) and not as_first and not as_name):
            return False
    return True


def _added(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """The words, or characters, that are more often in the second than in the first."""
    return [*(Counter(after) - Counter(before)).elements()]


def _is_capital(word: str) -> bool:
    return word[0].isupper() and not _FIRST_PERSON.fullmatch(word)


def _letters(text: str) -> str:
    return re.sub(r"[\W_]", "", text).lower()


def _paired(text: str) -> Counter[str]:
    return Counter(_PAIRED.findall(text))


def _held(found: list[str]) -> Counter[str]:
    """The words that no correction may add or take away: numbers, and negations, all as "not"."""
    small = ("not" if _NEGATION.fullmatch(word) else word.lower() for word in found)
    return Counter(word for word in small if word == "not" or word in _NUMBERS)


def _chunk(source: str, start: int, end: int, new: str) -> str:
    """The text between two positions, extended to white space on both sides; "" for new words beside white space."""
    if start == end and new[:1].isspace() | new[-1:].isspace():
        return ""
    while start > 0 and not source[start - 1].isspace():
        start -= 1
    while end < len(source) and not source[end].isspace():
        end += 1
    return source[start:end]
