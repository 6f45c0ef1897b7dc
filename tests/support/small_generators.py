"""Generators of small random models in three modes, and what stock fairseq says in their place."""

from typing import Any

from fairseq.models import FairseqEncoderDecoderModel
from fairseq.sequence_generator import SequenceGenerator

from fairseq_aggdec.generation.beam_generator import AggressiveBeamGenerator
from fairseq_aggdec.generation.generator import AggressiveGenerator
from tests.support.random_models import dictionary, random_batch, random_model

WORDS = dictionary(30)
BATCHES = [random_batch(seed, WORDS, lengths) for seed, lengths in enumerate([[3, 6, 1, 4], [7], [2, 2], [5, 1, 8]])]
MODES = ("greedy", "iad", "aggressive-beam")


def small_model(seed: int = 1, **options: Any) -> FairseqEncoderDecoderModel:
    return random_model(seed, WORDS, WORDS, eos_share=0.1, **options)


def generator(models: list[Any], mode: str, **options: Any) -> AggressiveGenerator:
    kind, beam = (AggressiveBeamGenerator, 3) if mode == "aggressive-beam" else (AggressiveGenerator, 1)
    options = {"beam_size": beam, "max_len_b": 20} | options
    return kind.of(models, WORDS, src_dict=WORDS, decoding=mode, **options)


def tokens(found: list[list[dict[str, Any]]]) -> list[list[list[int]]]:
    return [[hypothesis["tokens"].tolist() for hypothesis in n_best] for n_best in found]


def stock(model: FairseqEncoderDecoderModel, mode: str, batch: dict[str, Any]) -> list[list[list[int]]]:
    beam = 3 if mode == "aggressive-beam" else 1
    return tokens(SequenceGenerator([model], WORDS, beam_size=beam, max_len_b=20).generate([model], batch))
