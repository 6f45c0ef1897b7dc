"""Drafts of a given quality for models that have learned nothing, so that full sizes can be timed without training.

A random model's greedy output is decoded beforehand, outside the clock. Drafts are then made from it: IAD copies from a
version of it that has a given edit ratio, as a corrected sentence has to its source, and a block drafter, which runs as
always, has its proposals replaced by that output, wrong at so many positions that a given number of tokens is accepted.
Encoding, drafting, verification and bookkeeping are those of ordinary decoding; the model does not know that the text
that it encodes is not the text that is copied from, nor is that dearer or cheaper.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.decoding.drafters.block import lengths_to_end
from fairseq_aggdec.decoding.outputs import Outputs
from fairseq_aggdec.decoding.roles import Draft, Drafter, DraftSchedule
from fairseq_aggdec.generation.generator import AggressiveGenerator

_GOLDEN_RATIO = 0.6180339887498949


Texts = Mapping[int, Sequence[int]]
"""tokens by sentence number, EOS included"""


@dataclass(frozen=True)
class Oracle:
    """What drafts are made from; made before the clock starts."""

    texts: Texts
    """`iad` and `hybrid`: what to copy from; `gad` and `gad++`: what to propose at each position of the output"""

    @classmethod
    def to_copy_from(cls, outputs: Texts, edit_ratio: float, vocabulary: range) -> "Oracle":
        """For `iad` and `hybrid`: texts that differ from the outputs by about `edit_ratio`.

        Args:
            outputs: of greedy decoding in the same precision.
            edit_ratio: edits a token.
            vocabulary: ordinary symbols, for the edits.
        """
        return cls(
            {
                number: [*edited(tokens[:-1], edit_ratio, vocabulary, number), tokens[-1]]
                for number, tokens in outputs.items()
            }
        )

    @classmethod
    def to_propose(cls, outputs: Texts, accepted: float, block_size: int, vocabulary: range) -> "Oracle":
        """For `gad` and `gad++`: the outputs, with wrong tokens where drafts are to fail.

        Args:
            outputs: of greedy decoding in the same precision.
            accepted: mean tokens an iteration of an endless sentence, the verifier's own included; the end of a
                sentence cuts its last block short.
            block_size: drafted tokens.
            vocabulary: ordinary symbols, for the wrong tokens.
        """
        texts = {}
        for number, output in outputs.items():
            texts[number], rng = list(output), Random(number)
            for position in wrong_positions(len(output), accepted, block_size, number):
                wrong = rng.choice(vocabulary)
                texts[number][position] = wrong if wrong != output[position] else vocabulary[wrong == vocabulary[0]]
        return cls(texts)


def edited(words: Sequence[int], ratio: float, vocabulary: Sequence[int], number: int) -> list[int]:
    """A text with `ratio` times as many edits as words: in three of five a word is another, in one each it is left out
    or has one put before it.

    Args:
        words: the text.
        ratio: edits a word; counts that are not whole are rounded up or down in turns, so that the mean is right.
        vocabulary: words to choose from.
        number: of the sentence: the same edits for the same number.
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
    """Positions at which drafts of a sentence fail.

    As if every drafted token were right with one probability: the number of tokens from one bifurcation to the next is
    geometric with mean `accepted`. Its quantiles are taken evenly, so that few sentences have that mean too.

    Args:
        length: of the output.
        accepted: mean tokens an iteration, the verifier's own included.
        block_size: drafted tokens; more than these and the bonus token no iteration brings.
        number: of the sentence.
    """
    right = _right_share(accepted, block_size)
    first = number * length  # sentences go on where the last one has stopped
    gaps = (_geometric(((first + i + 1) * _GOLDEN_RATIO) % 1.0, right) for i in range(length))
    ends = accumulate(gaps)
    return [end - 1 for end in ends if end <= length]


def _geometric(quantile: float, right: float) -> int:
    """The smallest number of tokens n with a share of at most 1 - right^n below the quantile."""
    tokens, beyond = 1, right
    while beyond > 1.0 - quantile and tokens < 10_000:
        tokens, beyond = tokens + 1, beyond * right
    return tokens


def _right_share(accepted: float, block_size: int) -> float:
    """The probability p of a right token at which blocks bring `accepted` tokens: 1 + p + ... + p^k of them."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        brought = sum(middle**power for power in range(block_size + 1))
        low, high = (middle, high) if brought < accepted else (low, middle)
    return low


class OracleBlockDrafter(Drafter):
    """Lets a block drafter do its work, and proposes something else."""

    def __init__(self, drafter: Drafter, block_size: int, drafts: Tensor, eos: int) -> None:
        """
        Args:
            drafter: drafts blocks.
            block_size: its longest draft.
            drafts: what to propose at each position of the output, B x L.
            eos: what follows it is cut off.
        """
        self._drafter = drafter
        self._block_size = block_size
        self._drafts = F.pad(drafts, (0, block_size), value=eos)  # B x (L+k)
        self._eos = eos

    def propose(self, outputs: Outputs, longest: Sequence[int]) -> Draft:
        """See `roles.Drafter.propose`."""
        self._drafter.propose(outputs, longest)
        columns = torch.arange(min(self._block_size, max(longest)), device=self._drafts.device)
        tokens = self._drafts.gather(1, outputs.lengths[:, None] - 1 + columns)  # B x k
        return Draft.of_lengths(tokens, lengths_to_end(tokens, self._eos))

    def keep(self, rows: Tensor) -> None:
        self._drafter.keep(rows)
        self._drafts = self._drafts[rows]


class OracleGenerator(AggressiveGenerator):
    """Decodes with an oracle's drafts."""

    def __init__(self, *args: Any, oracle: Oracle, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.oracle = oracle
        self._numbers: list[int] = []

    def _generate(self, sample: dict[str, Any], *args: Any, **kwargs: Any) -> list[list[dict[str, Any]]]:
        self._numbers = sample["id"].tolist()
        return super()._generate(sample, *args, **kwargs)

    def make_drafter(
        self, net_input: dict[str, Any], start: int, encoder_outs: list[dict[str, Any]], schedule: DraftSchedule
    ) -> Drafter:
        source = net_input["src_tokens"]
        texts = [self.oracle.texts[number] for number in self._numbers]
        if self.decoding in ("iad", "hybrid"):
            copied = padded(texts, self.pad, source.device)
            return super().make_drafter({**net_input, "src_tokens": copied}, start, encoder_outs, schedule)
        drafter = super().make_drafter(net_input, start, encoder_outs, schedule)
        assert self.block_draft is not None
        return OracleBlockDrafter(
            drafter, self.block_draft.block_size, padded(texts, self.eos, source.device), self.eos
        )


def padded(sentences: Sequence[Sequence[int]], fill: int, device: torch.device) -> Tensor:
    """B x L, `fill` behind each sentence."""
    width = max(map(len, sentences))
    return torch.tensor([[*sentence, *[fill] * (width - len(sentence))] for sentence in sentences], device=device)
