"""The characters that the English corrector reads, and what it is shown for others."""

from __future__ import annotations

import unicodedata

READ = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 !\"$%&'()+,-./:;?")
"""All that the corrector is shown. Its dictionary has a few more, which it hardly ever saw and cannot copy."""

PUNCTUATION = {
    **dict.fromkeys("‘’‚‛′ʼ´`", "'"),
    **dict.fromkeys("“”„‟″«»", '"'),
    **dict.fromkeys("‐‑‒–−", "-"),
    **dict.fromkeys("—―", " - "),
    "…": "...",
    **dict.fromkeys("\u00ad\u200b\ufeff", ""),  # soft hyphen, zero-width space, byte order mark
}
"""A word processor's punctuation and what a keyboard has for it; for white space see `str.isspace`."""

STAND_INS = {**dict.fromkeys("[{", "("), **dict.fromkeys("]}", ")"), **dict.fromkeys("€£¥", "$")}
"""Characters that another one, which the corrector reads, can stand in for."""


def plain(character: str) -> str | None:
    """What the corrector is shown for one character that is no white space, perhaps nothing; None: it reads no such."""
    if character in READ:
        return character
    if character in PUNCTUATION:
        return PUNCTUATION[character]
    if character in STAND_INS:
        return STAND_INS[character]
    if character.isalpha() or unicodedata.combining(character):
        letters = "".join(c for c in unicodedata.normalize("NFKD", character) if not unicodedata.combining(c))
        if not letters or (letters.isascii() and letters.isalpha()):
            return letters
    return None
