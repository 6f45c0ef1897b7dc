"""Lines that tokenizers find hard: other scripts, control characters, special tokens' names, odd spaces, long words."""

import random

_PARTS = [
    "Hello", "world", "Straße", "don't", "U.S.", "3.14", "1,000", "naïve", "e\u0301", "ﬁne", "ＡＢＣ", "½", "²", "™",
    "日本語", "中文字", "한국어", "русский", "العربية", "עברית", "हिन्दी", "ไทย", "😀",
    "👩‍👩‍👧‍👦", "🇩🇪", "☃", "\U0001f9ff", "𝔘𝔫𝔦",
    "<s>", "</s>", "<pad>", "<unk>", "<mask>", ">>deu<<", ">>xyz<<", "__de__", "deu_Latn", "de_DE", "<mask_1>",
    "<unk_5>", "@@", "▁", "▁▁the", "Ġthe", "##ing", "|||", "\\n", "http://a.b/?c=d&e", "a@b.cd", "<br/>", "&amp;",
    "''", "``", "--", "…", "—",
    "„Hallo“", "«oui»", "¿qué?", "\u202eabc", "\u200d", "\ufeff", "\x00", "\x01", "\x07", "\x1b[0m", "\x7f",
    "\u0085", "\u00ad", "\u0300", "\U000e0041", "\ufffd", "\u2028", "\r", "\t", "aaaaaaaaaaaaaaaa", "!!!!!!", "0000000",
]  # fmt: skip
_SPACES = [" "] * 8 + ["", "", "  ", "   ", "\u00a0", "\u3000", "\u200b", "\t"]


def hostile_lines(count: int = 60) -> list[str]:
    """The same lines each time: the first of more are those of fewer."""
    lines = [
        "",
        " ",
        "   ",
        "\x00",
        "ab" * 2500,
        "日" * 300,
        " leading and trailing ",
        "two  spaces",
        "\tTab",
    ]
    lines += [
        "It costs 5 €.",
        ">>deu<< Hello",
        ">>deu<<Hello >>eng<< world",
        "Hello >>deu<<",
        "</s> </s>",
        "A<mask>B",
    ]
    chance = random.Random(64)
    while len(lines) < count:
        parts = chance.choices(_PARTS, k=chance.choice((1, 2, 3, 5, 8, 13)))
        lines.append("".join(part + chance.choice(_SPACES) for part in parts))
    return lines[:count]
