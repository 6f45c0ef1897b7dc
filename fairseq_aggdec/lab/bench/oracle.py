"""Makes drafts of a given quality for random models, so that models of full size can be timed without training.

The random model's greedy output is decoded first, outside the timed part. Input-guided drafts copy from an edited
version of that output, with a given edit ratio. A block drafter runs as always, but its draft is replaced by the
output, with wrong tokens at so many positions that a given mean number of tokens is accepted. Encoding, drafting,
verification and bookkeeping cost what they cost in ordinary decoding.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.decoding.drafters.block import BlockDrafter
from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.roles import Drafter
from fairseq_aggdec.decoding.tokens import Draft, Order
from fairseq_aggdec.engine.small_model import SmallModel
from fairseq_aggdec.generation.generator import AggressiveGenerator
from fairseq_aggdec.generation.samples import Batch

_GOLDEN_RATIO = 0.6180339887498949

Texts = Mapping[int, Sequence[int]]
"""token numbers by sentence number, EOS included"""


def texts_to_copy(outputs: Texts, edit_ratio: float, vocabulary: range) -> Texts:
    """Texts for `iad` and `iad++`: outputs of `greedy` with about `edit_ratio` edits a token.

    `vocabulary`: ordinary symbols, to draw new tokens from.
    """
    return {n: [*edited(tokens[:-1], edit_ratio, vocabulary, n), tokens[-1]] for n, tokens in outputs.items()}


def texts_to_propose(outputs: Texts, accepted: float, block_size: int, vocabulary: range) -> Texts:
    """Texts for modes with a drafter: the outputs, with wrong tokens where drafts are to be rejected.

    Args:
        outputs: outputs of greedy decoding in the same precision.
        accepted: mean accepted tokens (committed tokens of an iteration) in a sentence without end; a real sentence
            has a little less, since its end cuts the last block.
        block_size: tokens of a draft.
        vocabulary: ordinary symbols, to draw wrong tokens from.
    """
    texts = {}
    for number, output in outputs.items():
        texts[number] = text = list(output)
        rng = Random(number)
        for position in wrong_positions(len(output), accepted, block_size, number):
            wrong = rng.choice(vocabulary)
            text[position] = wrong if wrong != output[position] else vocabulary[wrong == vocabulary[0]]
    return texts


def edited(words: Sequence[int], ratio: float, vocabulary: Sequence[int], number: int) -> list[int]:
    """A text after random edits: three of five replace a word, one inserts and one deletes a word.

    The `number` of the sentence seeds them. Fractions are rounded up for some sentences and down for others, so that
    the mean number of edits is `ratio` times that of words.
    """
    rng = Random(number)
    exact = ratio * len(words)
    count = int(exact * (number + 1)) - int(exact * number)
    text = list(words)
    for position in sorted(rng.sample(range(len(text)), min(count, len(text))), reverse=True):
        kind = rng.choice(("replace", "replace", "replace", "insert", "delete"))
        end = position if kind == "insert" else position + 1
        text[position:end] = [] if kind == "delete" else [rng.choice(vocabulary)]
    return text


def wrong_positions(length: int, accepted: float, block_size: int, number: int) -> list[int]:
    """Positions of the wrong draft tokens of sentence `number`, for the arguments of `texts_to_propose`.

    They are as if each draft token were right with the same probability: the distance from one wrong token to the next
    has a geometric distribution. Its quantiles are taken in a low-discrepancy sequence instead of at random, so that
    also a few sentences have the wanted mean.
    """
    right = min(_right_probability(accepted, block_size), 1 - 1e-12)
    first = number * length  # each sentence continues the sequence of the one before
    quantiles = (((first + i + 1) * _GOLDEN_RATIO) % 1.0 for i in range(length))
    # the smallest number of tokens n with 1 - right^n >= quantile
    gaps = (max(1, math.ceil(math.log1p(-quantile) / math.log(right))) if right else 1 for quantile in quantiles)
    return [end - 1 for end in accumulate(gaps) if end <= length]


def _right_probability(accepted: float, block_size: int) -> float:
    """The probability p of a right token for which the mean 1 + p + ... + p^k of committed tokens is `accepted`."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        brought = sum(middle**power for power in range(block_size + 1))
        low, high = (middle, high) if brought < accepted else (low, middle)
    return low


class OracleBlockDrafter(Drafter):
    """Runs a block drafter, for its cost, and replaces its draft by given tokens."""

    def __init__(self, drafter: Drafter, block_size: int, drafts: Tensor, eos: int) -> None:
        """`drafts`: the token to draft at each output position, B x L; a draft ends with its first EOS."""
        self._drafter = drafter
        self._block_size = block_size
        self._drafts = F.pad(drafts, (0, 1), value=eos)  # B x (L+1): behind what is foreseen only EOS is drafted
        self._eos = eos

    def propose(self, outputs: Outputs, limits: Sequence[int]) -> Draft:
        """See `roles.Drafter.propose`."""
        self._drafter.propose(outputs, limits)
        columns = torch.arange(min(self._block_size, max(limits)))
        # an output that parts from the foreseen one at a near-tie may be longer
        places = (torch.tensor(outputs.known_lengths)[:, None] - 1 + columns).clamp(max=self._drafts.size(1) - 1)
        tokens = self._drafts.gather(1, places)  # B x k
        model = self._drafter.model if isinstance(self._drafter, BlockDrafter) else None
        if isinstance(model, SmallModel):
            model.replace_drafts(outputs.texts, tokens.tolist())
        return Draft.up_to_end(tokens, self._eos)

    def keep(self, order: Order) -> None:
        self._drafter.keep(order)
        self._drafts = self._drafts[order.rows]


class OracleGenerator(AggressiveGenerator):
    """A generator that drafts from given texts: copies are made from them, block drafts are replaced by them."""

    def __init__(self, *args: Any, texts: Texts, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.texts = texts

    def make_drafter(self, batch: Batch) -> Drafter:
        texts = [self.texts[number] for number in batch.ids()]
        if self.mode.copies:
            return super().make_drafter(batch._replace(source=padded(texts, self.pad, batch.source.device)))
        drafter = super().make_drafter(batch)
        return OracleBlockDrafter(
            drafter, self.block_draft.block_size, padded(texts, self.eos, torch.device("cpu")), self.eos
        )


def padded(sentences: Sequence[Sequence[int]], fill: int, device: torch.device) -> Tensor:
    """Sentences as one tensor, B x L, padded at the end with `fill`."""
    width = max(map(len, sentences))
    return torch.tensor([[*sentence, *[fill] * (width - len(sentence))] for sentence in sentences], device=device)
