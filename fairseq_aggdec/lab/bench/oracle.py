"""Makes drafts of a given quality for random models, so that models of full size can be timed without training.

The random model's greedy output is decoded first, outside the timed part. Input-guided drafts copy from an edited
version of that output, with a given edit ratio. A model that drafts runs as always, but its draft is replaced by the
output, with wrong tokens at so many positions that as many tokens are accepted in the mean as is given. Encoding,
drafting, verification and bookkeeping cost what they cost in ordinary decoding.
"""

import math
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor

from fairseq_aggdec.decoding.drafters.block import BlockDrafter
from fairseq_aggdec.decoding.roles import Drafter
from fairseq_aggdec.decoding.tokens import RowSelection, padded
from fairseq_aggdec.engine.graphs.buffers import rows_bucket
from fairseq_aggdec.engine.small_model import SmallModel
from fairseq_aggdec.generation.generator import AggressiveGenerator
from fairseq_aggdec.generation.samples import Batch

_GOLDEN_RATIO = 0.6180339887498949

Texts = Mapping[int, Sequence[int]]
"""token ids by sentence id, EOS included"""


def texts_to_copy(outputs: Texts, edit_ratio: float, vocabulary: range) -> Texts:
    """Texts for `iad` and `iad++`: outputs of `greedy` with about `edit_ratio` edits a token.

    `vocabulary`: ordinary symbols, to draw new tokens from.
    """
    return {
        sentence: [*edited(tokens[:-1], edit_ratio, vocabulary, sentence), tokens[-1]]
        for sentence, tokens in outputs.items()
    }


def texts_to_propose(
    outputs: Texts, accepted: float, block_size: int, vocabulary: range
) -> Texts:
    """Texts for modes with a drafter: the outputs, with wrong tokens where drafts are to be rejected.

    Args:
        outputs: outputs of greedy decoding in the same precision.
        accepted: mean accepted tokens (committed tokens of an iteration) in a sentence without end; a real sentence
            has a little less, since its end cuts the last block.
        block_size: tokens of a draft.
        vocabulary: ordinary symbols, to draw wrong tokens from.
    """
    texts = {}
    for sentence, output in outputs.items():
        rng = Random(sentence)
        text = list(output)
        for place in wrong_positions(len(output), accepted, block_size, sentence):
            wrong = rng.choice(vocabulary)
            if wrong == output[place]:
                wrong = vocabulary[wrong == vocabulary[0]]
            text[place] = wrong
        texts[sentence] = text
    return texts


def edited(
    words: Sequence[int], ratio: float, vocabulary: Sequence[int], sentence: int
) -> list[int]:
    """A text after random edits: three of five replace a word, one inserts and one deletes a word.

    The id of the sentence seeds them. Fractions are rounded up for some sentences and down for others, so that the mean
    count of edits is `ratio` times that of words.
    """
    rng = Random(sentence)
    exact = ratio * len(words)
    count = int(exact * (sentence + 1)) - int(exact * sentence)
    text = list(words)
    places = rng.sample(range(len(text)), min(count, len(text)))
    for place in sorted(places, reverse=True):
        kind = rng.choice(("replace", "replace", "replace", "insert", "delete"))
        end = place if kind == "insert" else place + 1
        text[place:end] = [] if kind == "delete" else [rng.choice(vocabulary)]
    return text


def wrong_positions(
    length: int, accepted: float, block_size: int, sentence: int
) -> list[int]:
    """Positions of a sentence's wrong draft tokens, for the arguments of `texts_to_propose`.

    They are as if each draft token were right with the same probability: the distance from one wrong token to the next
    has a geometric distribution. Its quantiles are taken in a low-discrepancy sequence instead of at random, so that
    also a few sentences have the wanted mean.
    """
    right = min(_right_probability(accepted, block_size), 1 - 1e-12)
    first = sentence * length  # each sentence continues the sequence of the one before
    places = []
    end = 0
    for index in range(first + 1, first + length + 1):
        quantile = (index * _GOLDEN_RATIO) % 1.0
        # the smallest distance n with 1 - right^n >= quantile
        distance = math.log1p(-quantile) / math.log(right) if right else 1
        end += max(1, math.ceil(distance))
        if end <= length:
            places.append(end - 1)
    return places


def _right_probability(accepted: float, block_size: int) -> float:
    """The probability p of a right token for which the mean 1 + p + ... + p^k of committed tokens is `accepted`."""
    low = 0.0
    high = 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if sum(middle**power for power in range(block_size + 1)) < accepted:
            low = middle
        else:
            high = middle
    return low


class SimulatedModel:
    """A `drafters.block.BlockModel` that runs another one, for its cost, and drafts given tokens.

    A graph may read the tokens (`engine.loops`), so that one model serves all batches.
    """

    sync_is_costly = False  # the tokens are on the host

    def __init__(
        self,
        model: Any,
        sentences: int,
        longest: int,
        eos: int,
        device: torch.device,
    ) -> None:
        """`sentences`: of the largest batch; `longest`: the length of the longest text; `device`: of the verifier."""
        self.model = model
        self._eos = eos
        # after what is foreseen only EOS is drafted
        self._tokens = torch.full((rows_bucket(sentences), longest + 1), eos)
        self._on_device = self._tokens.to(device, copy=True)

    def __getattr__(self, name: str) -> Any:
        """What else a loop on the device asks a model."""
        return getattr(self.model, name)

    def start(self, texts: Tensor) -> None:
        """Start a new batch. `texts`: the token to draft at each output position, B x L."""
        self._tokens.fill_(self._eos)
        self._tokens[: texts.size(0), : texts.size(1)] = texts

    def begin(self) -> None:
        """See `LateStart.begin`; a loop on the device is about to draft."""
        self.model.begin()
        self._on_device.copy_(self._tokens)

    def draft(self, texts: Sequence[Sequence[int]], block_size: int) -> Tensor:
        self.model.draft(texts, block_size)
        lengths = torch.tensor([[len(text)] for text in texts])
        places = lengths + torch.arange(block_size)
        tokens = _at(self._tokens[: len(texts)], places)
        if isinstance(self.model, SmallModel):
            self.model.replace_drafts(texts, tokens.tolist())
        return tokens

    def drafts_on_device(self, lengths: Tensor, block_size: int) -> Tensor:
        """The drafts of texts of these lengths, R x 1 -> R x k, in a loop on the device; its model drafts as well."""
        places = lengths + torch.arange(block_size, device=lengths.device)
        return _at(self._on_device[: lengths.size(0)], places)

    def keep(self, order: RowSelection) -> None:
        self.model.keep(order)
        left = len(order.rows)
        self._tokens[:left] = self._tokens[order.rows]
        self._on_device[:left] = self._tokens[:left]


def _at(texts: Tensor, positions: Tensor) -> Tensor:
    """The tokens of texts at these positions, B x k; the first one is at position 1, after the start symbol."""
    # an output that parts from the foreseen one at a near-tie may be longer
    return texts.gather(1, (positions - 1).clamp(max=texts.size(1) - 1))


class OracleGenerator(AggressiveGenerator):
    """A generator that drafts from given texts: copies are made from them, a model's drafts are replaced by them."""

    def __init__(self, *args: Any, texts: Texts, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.texts = texts
        self._simulated: SimulatedModel | None = None

    def make_drafter(self, batch: Batch) -> Drafter:
        texts = [self.texts[sentence] for sentence in batch.ids()]
        if self.mode.copies:
            source = padded(texts, self.pad).to(batch.source.device)
            return super().make_drafter(batch._replace(source=source))
        drafter = super().make_drafter(batch)
        assert isinstance(drafter, BlockDrafter)
        if self._simulated is None or self._simulated.model is not drafter.model:
            longest = max(map(len, self.texts.values()))
            self._simulated = SimulatedModel(
                drafter.model,
                len(self.texts),
                longest,
                self.eos,
                batch.device,
            )
        self._simulated.start(padded(texts, self.eos))
        drafter.model = self._simulated
        return drafter
