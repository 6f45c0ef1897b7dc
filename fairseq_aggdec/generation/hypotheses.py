"""fairseq's hypotheses from what was decoded, and the statistics of a batch."""

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

import torch
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from fairseq_aggdec.decoding.tokens import Decoded, flat
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.samples import Batch, Sources, source_lengths
from fairseq_aggdec.generation.stats_file import StatsFile

NBest = list[dict[str, Any]]
"""fairseq's hypotheses of a sentence, best first"""


def nan_error(whose: str) -> AggdecError:
    """What is raised where the scores of a sentence are NaN; fairseq's own search fails there, too."""
    return AggdecError(
        f"{whose} scores are NaN: in half precision (--fp16) a model may overflow, so decode in --bf16 or in "
        "single precision; otherwise its training has diverged"
    )


def hypotheses_of(
    search: SequenceGenerator, batch: Batch, decoded: Sequence[Sequence[Decoded]]
) -> list[NBest]:
    """The hypotheses of each sentence, on the models' device; the host does not wait for them to arrive there.

    `search` has the options of the search. Raises `AggdecError` where a score is NaN.
    """
    scores = []
    for row, n_best in enumerate(decoded):
        for sentence in n_best:
            score = _score(search, sentence)
            if math.isnan(score):
                raise nan_error(f"sentence {batch.ids()[row]}: its")
            # where outputs are as long as their sources, an unknown word with a negative penalty can beat a forced EOS
            is_too_long = len(sentence.tokens) - 1 > batch.longest[row]
            scores.append(-math.inf if is_too_long else score)

    # two copies to a GPU and not one, since torch.save refuses tensors of two types in one memory
    sentences = list(chain.from_iterable(decoded))
    lengths = [len(sentence.tokens) for sentence in sentences]
    tokens = flat(sentence.tokens for sentence in sentences).to(
        batch.device, non_blocking=True
    )
    values = flat([*(sentence.log_probs for sentence in sentences), scores], "f").to(
        batch.device, non_blocking=True
    )
    *log_probs, last = values.split_with_sizes([*lengths, len(scores)])
    hypotheses = map(
        _hypothesis,
        sentences,
        tokens.split_with_sizes(lengths),
        log_probs,
        last.unbind(),
    )
    return [[next(hypotheses) for _ in n_best] for n_best in decoded]


def _score(search: SequenceGenerator, sentence: Decoded) -> float:
    """The beam's, or the sum of log-probabilities, normalised by length where fairseq's options say so."""
    if sentence.score is not None:
        return sentence.score
    total = flat([sentence.log_probs], "f").sum()
    if search.normalize_scores:
        total = total / len(sentence.tokens) ** search.len_penalty
    return float(total)


def _hypothesis(
    sentence: Decoded, tokens: Tensor, log_probs: Tensor, score: Tensor
) -> dict[str, Any]:
    none = torch.empty(0)
    return {
        "tokens": tokens,
        "score": score,
        "attention": none,
        "alignment": none,
        "positional_scores": log_probs,
        "steps": sentence.stats.iterations,
        "history": [{"tokens": draft} for draft in sentence.drafts or []],
        "stats": sentence.stats,
    }


def write_statistics(
    file: StatsFile,
    search: SequenceGenerator,
    sources: Sources,
    batch: Batch,
    decoded: Sequence[Decoded],
    first: int,
    seconds: float,
) -> None:
    """Write a line for each sentence; `first`: see `Batch.ids`; `seconds`: the time of the batch."""
    tokens = batch.source.cpu()
    if sources.words is None:
        read: Sequence[Any] = source_lengths(search, batch.net_input).tolist()
    else:
        read = [row[:-1] for row in sources.in_target(tokens)]
    for row, (sentence_id, sentence) in enumerate(
        zip(batch.ids(first), decoded, strict=True)
    ):
        file.write(
            sentence_id,
            read[row],
            sentence,
            seconds if len(decoded) == 1 else None,
            _text(tokens[row], sentence, sources),
        )


def _text(source: Tensor, sentence: Decoded, sources: Sources) -> dict[str, Any] | None:
    """A sentence in symbols (`source`: S, may be padded); None where drafts are not kept."""
    if sentence.drafts is None:
        return None
    words = sources.words
    read = []
    if words is not None:
        read = [
            words[token]
            for token in source.tolist()
            if token not in (words.pad(), words.eos())
        ]
    return {
        "source": read,
        "output": [sources.targets[token] for token in sentence.tokens],
        "drafts": [
            [sources.targets[token] for token in draft.tolist()]
            for draft in sentence.drafts
        ],
    }
