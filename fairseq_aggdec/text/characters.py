"""The characters that the English corrector reads, and those that replace others for it."""

import unicodedata

READ = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 !\"$%&'()+,-./:;?"
)
"""all characters that the corrector is shown; its dictionary has a few more, which were too rare for it to learn"""

PUNCTUATION = {
    **dict.fromkeys("‘’‚‛′ʼ´`", "'"),
    **dict.fromkeys("“”„‟″«»", '"'),
    **dict.fromkeys("‐‑‒–−", "-"),
    **dict.fromkeys("—―", " - "),
    "…": "...",
    # soft hyphen, zero-width space, byte order mark
    **dict.fromkeys("\u00ad\u200b\ufeff", ""),
}
"""punctuation of word processors, and a keyboard's characters for it; white space is what `str.isspace` says"""

STAND_INS = {
    **dict.fromkeys("[{", "("),
    **dict.fromkeys("]}", ")"),
    **dict.fromkeys("€£¥", "$"),
}
"""other characters that are shown as a similar one"""


def plain(character: str) -> str | None:
    """What the corrector is shown for a character that is no white space, possibly nothing; None: it has no form."""
    if character in READ:
        return character
    if character in PUNCTUATION:
        return PUNCTUATION[character]
    if character in STAND_INS:
        return STAND_INS[character]
    if character.isalpha() or unicodedata.combining(character):
        letters = "".join(
            c
            for c in unicodedata.normalize("NFKD", character)
            if not unicodedata.combining(c)
        )
        if not letters or (letters.isascii() and letters.isalpha()):
            return letters
    return None
