"""How near to a tie a difference is."""

import math
from typing import Any

import torch
from fairseq.sequence_generator import SequenceGenerator

from fairseq_aggdec.lab.verify.differences import Decode, beam_gap_of, gap_of
from tests.support.random_models import dictionary, random_batch, random_model

WORDS = dictionary(20)


def decode_by(generator: SequenceGenerator, model: Any) -> Decode:
    return lambda sample, prefix: generator.generate([model], sample, prefix_tokens=prefix)


def test_the_reference_says_how_far_two_tokens_are_apart() -> None:
    """What the model itself gives after the same beginning, computed at once."""
    model, sample = random_model(3, WORDS, WORDS), random_batch(1, WORDS, [6])
    generator = SequenceGenerator([model], WORDS, beam_size=1)
    ((best, *_),) = generator.generate([model], sample)
    tokens = best["tokens"].tolist()
    expected, found = tokens[3], 4 if tokens[3] != 4 else 5
    read = torch.tensor([[WORDS.eos(), *tokens[:3]]])
    with torch.no_grad():
        logits = model(**sample["net_input"], prev_output_tokens=read)[0][0, -1]
    gap = gap_of(decode_by(generator, model), {0: sample})(0, tokens[:3], expected, found)
    assert math.isclose(gap, float(logits[expected] - logits[found]), abs_tol=1e-4)


def test_a_beam_is_as_near_to_a_tie_as_its_nearest_candidates() -> None:
    model, sample = random_model(3, WORDS, WORDS), random_batch(1, WORDS, [6])
    generator = SequenceGenerator([model], WORDS, beam_size=3, max_len_b=8)
    measure = beam_gap_of(decode_by(generator, model), {0: sample}, generator.search)
    gap = measure(0, [], 5, 6)
    assert 0.0 < gap < 0.5
    assert gap == measure(0, [5], 7, 8), "of the whole sentence"
    with torch.no_grad():
        model.decoder.output_projection.weight[7] = model.decoder.output_projection.weight[6]
    assert measure(0, [], 5, 6) == 0.0
