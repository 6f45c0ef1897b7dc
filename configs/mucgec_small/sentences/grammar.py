"""Chinese sentences without an author: words drawn by their frequency into the places of a small phrase grammar.

They mean nothing, but have the words, function words, orders and marks of Chinese, from which a small corrector learns
which characters stand together.
"""

from __future__ import annotations

from random import Random

from fairseq_aggdec.errors import AggdecError

from .dictionary import Draw, Words

_RULES: dict[str, dict[str, float]] = {
    "CLAUSE": {
        "NOUN PREDICATE": 12,
        "TIME NOUN PREDICATE": 2,
        "NOUN TIME PREDICATE": 1,
        "在 PLACE NOUN PREDICATE": 1,
        "c NOUN PREDICATE": 3,
        "c PREDICATE": 1,
        "PREDICATE": 1,
        "FOCUS NOUN PREDICATE": 0.7,
        "NOUN BE OBJECT": 3,
        "OBJECT BE NOUN 的": 0.3,
        "NOUN BE PREDICATE 的": 0.7,
        "PLACE 有 OBJECT": 0.7,
        "NOUN 比 NOUN a": 0.3,
        "NOUN 越 来 越 a": 0.2,
        "NOUN THINK NOUN PREDICATE": 2,
        "THINK NOUN PREDICATE": 0.5,
        "如果 NOUN PREDICATE 的 话": 0.3,
        "对 NOUN 来 说": 0.4,
        "i": 0.3,
    },
    "PREDICATE": {
        "VERB": 2,
        "VERB OBJECT": 7,
        "ADVERB VERB": 2,
        "ADVERB VERB OBJECT": 4,
        "VERB 了 OBJECT": 3,
        "VERB 过 OBJECT": 0.7,
        "VERB 着 OBJECT": 1,
        "VERB DIRECTION": 0.5,
        "VERB VERB OBJECT": 1,
        "MODAL VERB": 1.5,
        "MODAL VERB OBJECT": 3,
        "ADVERB MODAL VERB OBJECT": 1,
        "p NOUN VERB": 1.5,
        "ADVERB p NOUN VERB OBJECT": 0.5,
        "在 PLACE VERB OBJECT": 1.5,
        "跟 NOUN 一起 VERB": 0.5,
        "给 NOUN VERB OBJECT": 0.5,
        "让 NOUN PREDICATE": 1,
        "把 NOUN VERB 了": 0.4,
        "把 NOUN VERB DIRECTION": 0.3,
        "被 NOUN VERB 了": 0.5,
        "去 s VERB OBJECT": 0.3,
        "ad 地 VERB": 1,
        "VERB 得 DEGREE a": 1,
        "DEGREE a": 2,
        "ADVERB a": 0.7,
    },
    "NOUN": {"r": 7, "n": 4, "OBJECT": 4, "n 们": 0.1, "r 自己": 0.2, "所有 的 n": 0.1},
    "OBJECT": {
        "n": 8,
        "n n": 1.5,
        "vn": 1.5,
        "ns": 1,
        "nz": 0.2,
        "r 的 n": 3,
        "r n": 0.7,
        "a 的 n": 2,
        "a n": 1,
        "DEGREE a 的 n": 1.5,
        "n 的 n": 3,
        "ns 的 n": 0.7,
        "VERB OBJECT 的 n": 1,
        "NOUN VERB 的 n": 1.5,
        "NUMBER q n": 2,
        "NUMBER q a 的 n": 0.5,
        "这 q n": 1,
        "n 和 n": 1,
        "n 、 n 和 n": 0.5,
        "“ n ”": 0.3,
        "《 n n 》": 0.1,
        "n （ n ）": 0.1,
    },
    "TIME": {
        "t": 5,
        "PREDICATE 的 时候": 1,
        "PREDICATE 以后": 0.5,
        "有 时候": 0.3,
        "NUMBER 年": 0.3,
        "NUMBER 个 月 前": 0.1,
    },
    "PLACE": {"s": 4, "ns": 2, "n f": 2, "OBJECT f": 1},
    "BE": {
        "是": 10,
        "不 是": 1,
        "也 是": 1,
        "就 是": 1,
        "都 是": 0.7,
        "ADVERB 是": 0.5,
        "有": 3,
        "没有": 1,
        "也 有": 0.5,
    },
    "THINK": {
        "觉得": 3,
        "认为": 2,
        "知道": 1,
        "想": 1,
        "希望": 1,
        "看到": 0.5,
        "发现": 0.5,
        "说": 1,
        "不 知道": 0.3,
    },
    "FOCUS": {
        "所以": 2,
        "因为": 2,
        "但是": 2,
        "而且": 1,
        "还有": 0.5,
        "为了": 0.3,
        "比如 说": 0.2,
    },
    "VERB": {"v": 9, "vn": 2},
    "DIRECTION": {
        "起来": 2,
        "下去": 1,
        "出来": 1,
        "到 PLACE": 1,
        "回 s": 0.5,
        "完 了": 0.3,
    },
    "MODAL": {
        "会": 3,
        "可以": 3,
        "应该": 2,
        "要": 3,
        "想": 2,
        "能": 2,
        "需要": 0.7,
        "不 能": 1,
        "不 会": 1,
        "不 要": 0.5,
        "必须": 0.5,
    },
    "ADVERB": {
        "d": 10,
        "不": 3,
        "也": 2,
        "都": 2,
        "就": 2,
        "没有": 1,
        "也 不": 0.5,
        "d 不": 0.3,
        "已经": 0.5,
        "常常": 0.3,
        "一直": 0.3,
    },
    "DEGREE": {
        "很": 6,
        "非常": 2,
        "太": 1,
        "更": 1,
        "最": 1,
        "不 太": 0.3,
        "比较": 0.5,
    },
    "NUMBER": {
        "一": 9,
        "两": 2,
        "三": 1,
        "四": 0.5,
        "五": 0.5,
        "十": 0.5,
        "几": 1,
        "很 多": 0.5,
        "DIGIT": 0.5,
        "DIGIT DIGIT": 0.5,
        "每": 1,
    },
    "DIGIT": dict.fromkeys("0123456789", 1),
    "BETWEEN": {"，": 20, "；": 1, "：": 0.5},
    "END": {
        "。": 20,
        "吧 。": 0.3,
        "了 。": 0.7,
        "的 。": 0.3,
        "吗 ？": 1,
        "呢 ？": 0.5,
        "？": 0.5,
        "！": 1,
        "啊 ！": 0.2,
    },
}
"""{symbol: {what it may become: weight}}; capitals are symbols, small letters classes of words, the rest is written"""

_PARTS = {part for ways in _RULES.values() for way in ways for part in way.split()}
_WORD_CLASSES = sorted(part for part in _PARTS if part.isascii() and part.islower())
_OPEN = {"n", "v", "vn", "a"}
"""classes that a rare word may take the place of"""


class SentenceMaker:
    """Makes sentences; holds no state between them."""

    def __init__(
        self,
        words: Words,
        min_words: int = 4,
        max_words: int = 20,
        rare_share: float = 0.08,
    ) -> None:
        """
        Args:
            words: the dictionary.
            min_words, max_words: of a sentence, marks within it included.
            rare_share: so many of the nouns, verbs and adjectives are drawn by way of a character, each of GB 2312's
                first level as likely as the others, so that the rarest of them occur.

        Raises:
            AggdecError: the dictionary lacks a class of words, or a number is out of range.
        """
        if not 0 < min_words <= max_words or not 0 <= rare_share <= 1:
            raise AggdecError(
                f"min_words {min_words}, max_words {max_words}, rare_share {rare_share}: expected "
                "0 < min_words <= max_words and a share from 0 to 1"
            )
        if missing := [name for name in _WORD_CLASSES if name not in words.classes]:
            raise AggdecError(
                f"the dictionary has no words of class {', '.join(missing)}"
            )
        self._words = words
        self._rare = list(words.containing.values())
        self._rare_share = rare_share
        self._lengths = range(min_words, max_words + 1)
        self._rules = {symbol: Draw(ways) for symbol, ways in _RULES.items()}

    def sentence(self, rng: Random) -> list[str]:
        """Words and marks of one sentence: clauses, with a mark after each."""
        wanted = rng.choice(self._lengths)
        sentence: list[str] = []
        while len(sentence) < wanted:
            clause = self._expand("CLAUSE", rng)
            if len(sentence) + len(clause) <= self._lengths[-1]:
                sentence += clause + self._expand("BETWEEN", rng)
            elif len(sentence) > self._lengths[0]:
                break
        return sentence[:-1] + self._expand("END", rng)

    def line(self, rng: Random, another: float = 0.4) -> list[str]:
        """Words and marks of one or more sentences.

        Args:
            another: how likely a further one follows.
        """
        words = self.sentence(rng)
        while rng.random() < another:
            words += self.sentence(rng)
        return words

    def _expand(self, symbol: str, rng: Random) -> list[str]:
        words: list[str] = []
        for part in self._rules[symbol](rng).split():
            if part in _RULES:
                words += self._expand(part, rng)
            elif part in _WORD_CLASSES:
                rare = part in _OPEN and rng.random() < self._rare_share
                words.append(
                    (rng.choice(self._rare) if rare else self._words.classes[part])(rng)
                )
            else:
                words.append(part)
        return words
