"""The table of modes, and generators that wrap the one that fairseq's task built."""

from dataclasses import fields
from typing import Any

import pytest
from fairseq.sequence_generator import SequenceGenerator, SequenceGeneratorWithAlignment

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.drafting import DRAFTERS
from fairseq_aggdec.generation.generator import AggressiveGenerator
from fairseq_aggdec.generation.modes import MODES, modes_help
from fairseq_aggdec.generation.options import Decoding
from tests.support.small_generators import BATCHES, WORDS, small_model, tokens


def test_every_row_names_drafters_options_and_modes_that_there_are() -> None:
    options = {option.name for option in fields(Decoding)}
    for name, mode in MODES.items():
        assert name == mode.name
        assert mode.drafter is None or mode.drafter in DRAFTERS
        assert set(mode.stands_for) <= MODES.keys()
        assert set(mode.options) <= options
        assert f"{name}: {mode.help}" in modes_help()


def test_the_values_of_the_search_are_those_of_the_generator_that_is_wrapped() -> None:
    model = small_model()
    options: dict[str, Any] = {"max_len_a": 0.5, "max_len_b": 7, "min_len": 2, "len_penalty": 0.3, "temperature": 1.2}
    options |= {"unk_penalty": 1.0, "tokens_to_suppress": ("w3",), "eos": WORDS.index("w5"), "normalize_scores": False}
    wrapped = SequenceGenerator([model], WORDS, beam_size=1, **options)
    ours = AggressiveGenerator(wrapped, Decoding("iad"), WORDS)
    assert isinstance(ours, SequenceGenerator)
    assert tokens(ours.generate([model], BATCHES[0])) == tokens(wrapped.generate([model], BATCHES[0]))


def test_what_cannot_be_wrapped_is_refused_by_name() -> None:
    model = small_model()
    with pytest.raises(AggdecError, match="SequenceGeneratorWithAlignment: --decoding iad replaces fairseq"):
        AggressiveGenerator(SequenceGeneratorWithAlignment([model], WORDS), Decoding("iad"), WORDS)
    with pytest.raises(AggdecError, match="--decoding greedy has a beam of one, and not of 3"):
        AggressiveGenerator(SequenceGenerator([model], WORDS, beam_size=3), Decoding("greedy"), WORDS)
    with pytest.raises(AggdecError, match="cannot honour a language model"):
        AggressiveGenerator(SequenceGenerator([model], WORDS, lm_model=small_model(2)), Decoding("iad"), WORDS)
