"""The word tables of this folder, `tables/NAME.txt`, read when they are first used.

A line is `word: form, form`, continued where the next one is indented; `#` begins a comment. Learners' errors are of
the classes of the NUCLE/ERRANT tradition; the entries are this project's.
"""

from configparser import ConfigParser
from functools import cache
from pathlib import Path

VOWELS = "aeiou"

_FOLDER = Path(__file__).parent / "tables"


@cache
def table(name: str) -> dict[str, tuple[str, ...]]:
    """{word: its forms} in the file's order; lower case, but for names and "I"."""
    parser = ConfigParser(delimiters=":", comment_prefixes="#", interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # keeps "English"
    lines = (_FOLDER / f"{name}.txt").read_text("utf-8")
    parser.read_string(f"[{name}]\n{lines}", name)
    return {
        word: tuple(form.strip() for form in forms.split(","))
        for word, forms in parser[name].items()
    }


@cache
def word_class(name: str) -> frozenset[str]:
    """The words of a class of `tables/classes.txt`."""
    return frozenset(table("classes")[name])
