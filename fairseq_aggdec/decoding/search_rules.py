"""The search options of fairseq's beam search; an engine applies them where it chooses, see `engine.plain.choice`."""

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import islice, takewhile
from typing import Any

from torch import Tensor

from fairseq_aggdec.decoding.tokens import Order

_OF_FAST_PATHS = {"pad", "unk", "eos", "max_len", "symbols", "min_len", "prefix"}


@dataclass(frozen=True)
class SearchRules:
    """The search options that decide which token is chosen.

    Positions count output tokens from 0; the token at position `max_len` is always EOS.
    """

    pad: int
    """never chosen"""
    unk: int
    eos: int
    max_len: int
    """the longest output, its EOS not counted"""
    symbols: int | None = None
    """size of the verifier's vocabulary, to which draft tokens are clamped; None: they are not clamped"""
    min_len: int = 1
    """EOS is banned before this position"""
    unk_penalty: float = 0.0
    """subtracted from the log-probability of `unk`"""
    no_repeat_ngram_size: int = 0
    """a token that completes an n-gram of this size for the second time is banned; 0: no ban"""
    suppressed: tuple[int, ...] = ()
    """tokens never chosen outside a forced prefix"""
    prefix: Tensor | None = field(default=None, repr=False)
    """forced beginnings of the outputs, B x P, padded with `pad`"""
    source_lengths: Tensor | None = field(default=None, repr=False)
    """B: an output must end exactly at this position (fairseq's --match-source-len)"""

    @cached_property
    def _of_rows(self) -> list[str]:
        """The rules that sentences of a batch have of their own."""
        return [rule.name for rule in fields(self) if isinstance(getattr(self, rule.name), Tensor)]

    @property
    def differ(self) -> bool:
        """Whether sentences of a batch have rules of their own."""
        return bool(self._of_rows)

    @cached_property
    def are_simple(self) -> bool:
        """Whether the rules are padding, an early EOS, the longest output and a forced prefix: those of fast paths.

        Any other field that is not at its default says no, so that no fast path has to know of a new rule.
        """
        others = (rule for rule in fields(self) if rule.name not in _OF_FAST_PATHS)
        return all(getattr(self, rule.name) == rule.default for rule in others)

    @property
    def read_output(self) -> bool:
        """Whether a rule reads the whole output so far."""
        return self.no_repeat_ngram_size > 1

    @property
    def forced_steps(self) -> int:
        """The number of steps with forced tokens in some row; in them fairseq lifts `min_len` for all rows."""
        return 0 if self.prefix is None else min(self.prefix.size(1), self.max_len)

    @cached_property
    def common_prefix(self) -> list[tuple[int, ...]]:
        """The tokens with which outputs are forced to begin, B x P, as far as all outputs have some; empty if P is 0.

        Where another rule may ban such a token, fairseq's choice in its place is found step by step: P is 0.
        """
        if self.prefix is None or not self.are_simple:
            return []
        none = {self.pad, self.eos}
        columns = takewhile(none.isdisjoint, zip(*self.prefix.tolist(), strict=True))
        return list(zip(*islice(columns, self.max_len), strict=True))

    def keep(self, kept: Tensor | Order) -> "SearchRules":
        """The same rules for some rows of the batch."""
        if not self.differ:
            return self
        rows = kept.tensor if isinstance(kept, Order) else kept
        changed: dict[str, Any] = {name: getattr(self, name)[rows] for name in self._of_rows}
        return replace(self, **changed)
