"""The search options of fairseq's beam search; an engine applies them where it chooses, see `engine.plain.choice`."""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, takewhile

from torch import Tensor

from fairseq_aggdec.decoding.tokens import Order


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

    @property
    def differ(self) -> bool:
        """Whether sentences of a batch have rules of their own."""
        return self.prefix is not None or self.source_lengths is not None

    @cached_property
    def common_prefix(self) -> list[tuple[int, ...]]:
        """The tokens with which outputs are forced to begin, B x P, as far as all outputs have some; empty if P is 0.

        Where another rule may ban such a token, fairseq's choice in its place is found step by step: P is 0.
        """
        may_ban = self.source_lengths is not None or self.no_repeat_ngram_size > 1 or math.isinf(self.unk_penalty)
        if self.prefix is None or may_ban:
            return []
        none = {self.pad, self.eos}
        columns = takewhile(none.isdisjoint, zip(*self.prefix.tolist(), strict=True))
        return list(zip(*islice(columns, self.max_len), strict=True))

    def keep(self, kept: Tensor | Order) -> "SearchRules":
        """The same rules for some rows of the batch."""
        if not self.differ:
            return self
        rows = kept.tensor if isinstance(kept, Order) else kept
        return replace(
            self,
            prefix=None if self.prefix is None else self.prefix[rows],
            source_lengths=None if self.source_lengths is None else self.source_lengths[rows],
        )
