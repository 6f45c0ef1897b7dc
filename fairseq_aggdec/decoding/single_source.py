"""`SourceCopyDrafter` for one sentence at a time, on lists.

For one sentence on a CPU, the fixed cost of some thirty tensor operations a draft is most of the drafter's time.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from fairseq_aggdec.decoding.input_guided import FOREIGN


class SingleSourceDrafter:
    """Drafts as `SourceCopyDrafter` does, whose documentation holds, for a batch of one row."""

    block_size: int | None = None

    def __init__(
        self,
        source: Sequence[int],
        eos: int,
        min_suffix: int = 1,
        max_suffix: int = 0,
        max_draft_len: int = 0,
        start: int | None = None,
    ) -> None:
        """
        Args:
            source: tokens in the target's vocabulary, EOS last; `FOREIGN` where there is none.
            eos, min_suffix, max_suffix, max_draft_len, start: see `SourceCopyDrafter`.
        """
        begin = eos if start is None else start
        self._context = [begin, *(FOREIGN if token == eos else token for token in source)]
        self._min_suffix = max(1, min_suffix)
        self._max_suffix = max_suffix or len(self._context)
        longest = max_draft_len or len(source)
        room = [0]  # how many tokens can follow, from the end: up to an EOS, to before a foreign token
        for token in reversed(source):
            room.append(0 if token == FOREIGN else 1 if token == eos else room[-1] + 1)
        self._room = [min(tokens, longest) for tokens in reversed(room)]
        self._source = torch.tensor([source])  # 1 x S

    def propose(
        self, tokens: Tensor, lengths: Tensor, lengths_host: Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        """See `loop.Drafter.propose`; drafts end with the first EOS and have no width to spare."""
        length = int(lengths) if lengths_host is None else lengths_host[0]
        match = self._unique_match(tokens[0, :length].tolist())
        room = 0 if match is None else self._room[match]
        first = match or 0
        return self._source[:, first : first + room], torch.tensor([room])

    def keep(self, rows: Tensor) -> None:
        pass

    def _unique_match(self, output: list[int]) -> int | None:
        """Where, in start symbol and source, the shortest suffix of the output that occurs once in them ends."""
        context, last = self._context, output[-1]
        limit = min(len(output), self._max_suffix)
        match, longest, second = None, 0, 0  # the two longest suffixes of the output that end somewhere
        for end, token in enumerate(context):
            if token == last:
                common = 1
                while common < limit and common <= end and context[end - common] == output[-1 - common]:
                    common += 1
                if common > longest:
                    match, longest, second = end, common, longest
                elif common > second:
                    second = common
        return match if longest > second and longest >= self._min_suffix else None


def align_sentence(source: Tensor, pad: int, eos: int, to_target: Tensor | None = None) -> list[int]:
    """`align_source` for a batch of one row, 1 x S: its tokens, EOS last."""
    symbols = source[0].tolist()
    first, end = 0, len(symbols)
    while end > 0 and symbols[end - 1] == pad:
        end -= 1
    while first < end and symbols[first] == pad:
        first += 1
    if first < end and symbols[end - 1] == eos:
        end -= 1
    if to_target is not None:
        symbols = to_target[source[0]].tolist()
    return [*symbols[first:end], eos]
