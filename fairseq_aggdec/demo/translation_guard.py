"""Checks of the shipped translator's output: it knows short everyday English, and writes something fluent for the rest.

A sentence of which it lost or cannot know a part comes back as it was, with a note that says why.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from fairseq_aggdec.text.degenerate import degenerated
from fairseq_aggdec.text.edits import result_of
from fairseq_aggdec.text.results import Result

UNSURE = -0.6
"""a mean log-probability of tokens; nearly every output below it is wrong (demo/mt/README.md)"""
PLAIN = str.maketrans("‘’“”–", "''\"\"-")
"""signs of word processors that the model has not learnt, and those that it has"""

_WORD = re.compile(r"[^\W\d_]+")
_ADDRESS = re.compile(
    r"[^\s<(]+@[\w.-]*\w|(?:https?://|www\.)\S*[\w/]|\b[\w-]+(?:\.[\w-]+)*\.(?:com|de|edu|net|org)\b(?:/\S*[\w/])?"
)
_NUMBER = re.compile(r"(?:(?<!\S)[+-])?\d+(?:[.,:/-]\d+)*")
_SIGNS = {"%": "prozent", "$": "dollar", "€": "euro", "£": "pfund", "°": "grad"}
# what stands before a word that has a capital for its place
_BEGINS = re.compile(r"(?:^|[.!?:\"(])[\W\d]*$")
# they become other times and numbers
_BEYOND = re.compile(r"\d ?[ap]\.?m\b|\bhalf past\b|\w+ty-one\b", re.IGNORECASE)
_DOUBLED = re.compile(r"\b(\w{4,}) \1\b", re.IGNORECASE)
_NUMERALS = dict(pair.split("=") for pair in (
    "two=zwei three=drei four=vier five=fünf six=sechs seven=sieben eight=acht nine=neun ten=zehn eleven=elf "
    "twelve=zwölf thirteen=dreizehn fourteen=vierzehn fifteen=fünfzehn sixteen=sechzehn seventeen=siebzehn "
    "eighteen=achtzehn nineteen=neunzehn twenty=zwanzig thirty=dreißig forty=vierzig fifty=fünfzig sixty=sechzig "
    "seventy=siebzig eighty=achtzig ninety=neunzig hundred=hundert thousand=tausend million=million billion=milliarde"
).split())  # fmt: skip
_GERMAN_NUMERAL = re.compile(
    "|".join(sorted(_NUMERALS.values(), key=len, reverse=True))
)
_NAMES = dict(pair.split("=") for pair in (
    "Monday=montag Tuesday=dienstag Wednesday=mittwoch Thursday=donnerstag Friday=freitag Saturday=samstag "
    "Sunday=sonntag January=januar February=februar March=märz May=mai June=juni July=juli October=oktober "
    "December=dezember Africa=afrika America=amerika American=amerikan British=brit Canada=kanada Europe=europa "
    "France=frankreich French=franz German=deutsch Germany=deutschland God=gott Hello=hallo Italian=italien "
    "Italy=italien Mexico=mexiko President=präsident Mr=herr Mrs=frau Rome=rom Russian=russ Spain=spanien "
    "Spanish=spani States=staaten Swiss=schweiz Switzerland=schweiz United=vereinigte World=welt Yeah=ja"
).split())  # fmt: skip
"""{a name: a part of its German form}, of those that often stand in everyday sentences"""
_GERMAN = set(
    "als auf das dem den der des du ein er es hat ich im ist mit sie sind und um von wer wie wir wo zu".split()
)
"""words that the corrector's dictionary has as ends of English ones"""


def checked(text: str, result: Result) -> Result:
    """The result of a text, in which every sentence with a reason against its translation stands as it was.

    `result`: of the text in PLAIN signs.
    """
    sentences = []
    for one in result.sentences:
        source = text[one.start : one.end]
        note = one.note
        reasons = _reasons(one.source, one.text, one.score)
        if note is None and (reason := next(reasons, None)):
            note = f"{reason}; not translated"
        output = one.text if note is None else source
        sentences.append(replace(one, source=source, text=output, note=note))
    return result_of(text, sentences, None)


def _reasons(source: str, output: str, score: float) -> Iterator[str]:
    """Why a translation cannot be trusted, the plainest reason first.

    `score`: the mean log-probability of the output's tokens.
    """
    english = _dictionary("gec", "en")
    model = _dictionary("mt", "de")
    words = _WORD.findall(source)
    # what must not be lost
    yield from (
        f"'{address}' would be lost"
        for address in _ADDRESS.findall(source)
        if address not in output
    )
    yield from _numbers(source, output)
    # a source that is no English, or beyond the model
    foreign = sum(
        word.lower() in _GERMAN or (word.islower() and word in model - english)
        for word in words
    )
    if foreign > 1 and 10 * foreign >= 3 * len(words):
        yield "it looks German"
    known = sum(
        _in(english, word) and _in(model, word) and word.lower() not in _GERMAN
        for word in words
    )
    if len(words) > 3 and 2 * known < len(words):
        yield "most of its words are unknown to the model"
    strange = sorted(set("".join(source.split())) - set("".join(model)))
    if strange:
        yield f"'{''.join(strange[:5])}' is unknown to the model"
    yield from _names(source, output)
    # an output that repeats itself, or is nothing that the model would say
    doubled = _DOUBLED.search(output)
    if doubled and not _DOUBLED.search(source):
        yield f"the output has '{doubled[0]}'"
    often = max([2, *Counter(words).values()])
    written = Counter(word for word in _WORD.findall(output) if len(word) > 3)
    yield from (
        f"the output repeats '{word}'"
        for word, count in written.items()
        if count > often
    )
    yield from filter(None, [degenerated(source.split(), output.split())])
    if score < UNSURE:
        yield "the model is unsure of it"


def _numbers(source: str, output: str) -> Iterator[str]:
    """Reasons of numbers: digits, as they are or with German points and commas, numerals and signs must not be lost."""
    # digits, in German form or as they are
    made = Counter(_NUMBER.findall(output))
    for number in _NUMBER.findall(source):
        swapped = number.translate(str.maketrans(".,", ",."))
        forms = [
            swapped,
            swapped.replace(".", ""),
            *([] if "," in number else [number, number.replace(":", ".")]),
        ]
        form = next((form for form in forms if made[form]), None)
        if form is None:
            yield f"the number {number} would be lost"
        else:
            made[form] -= 1
    yield from (
        f"the number {number} would be made up"
        for number, count in made.items()
        if count
    )
    # signs, or words for them
    for sign, word in _SIGNS.items():
        if sign in source and source.count(sign) != output.count(
            sign
        ) + output.lower().count(word):
            yield f"the sign {sign} would not come out right"
    # numerals
    numerals = Counter(
        _NUMERALS[word] for word in _WORD.findall(source.lower()) if word in _NUMERALS
    )
    lost = numerals - Counter(
        _GERMAN_NUMERAL.findall(output.lower().replace("beide", "zwei"))
    )
    yield from (
        f"the number '{word}' would be lost"
        for word, german in _NUMERALS.items()
        if german in lost
    )
    yield from (f"'{found}' is beyond the model" for found in _BEYOND.findall(source))


def _names(source: str, output: str) -> Iterator[str]:
    """Reasons of names: each must stand in its German form, or unchanged where the model does not know the word."""
    english = _dictionary("gec", "en")
    model = _dictionary("mt", "de")
    written = _WORD.findall(output)
    for found in _WORD.finditer(source):
        word = found[0]
        lower = word[0].lower() + word[1:]
        if (
            len(word) == 1
            or word.islower()
            or (lower in model | english and _BEGINS.search(source[: found.start()]))
        ):
            continue
        german = _NAMES.get(word) or _NAMES.get(word[:-1])  # Mondays
        stands = (
            german in output.lower()
            if german
            else word in model or any(other.startswith(word) for other in written)
        )
        if not stands:
            yield f"'{word}' would be lost"


def _in(dictionary: frozenset[str], word: str) -> bool:
    """Whether a word is in a dictionary as it is written, or without the capital of a sentence's beginning."""
    return word in dictionary or word[0].lower() + word[1:] in dictionary


@cache
def _dictionary(name: str, language: str) -> frozenset[str]:
    """The whole words of a shipped model's dictionary: frequent ones, and ends of others."""
    path = Path(__file__).with_name(name) / f"dict.{language}.txt"
    symbols = {line.split(" ")[0] for line in path.read_text("utf-8").splitlines()}
    return frozenset(word for word in symbols if not word.endswith("@@"))
