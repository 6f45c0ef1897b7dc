"""Every mode at the sizes that people run, with drafts that are really accepted, against fairseq's own search.

Random models accept few copies of their source. So drafts are made from what fairseq itself answered: `iad`
copies from it with edits, block drafters have their proposals replaced by it, with wrong tokens in places.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
import torch
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.sequence_generator import SequenceGenerator

from fairseq_aggdec.decoding.beam.planner import FixedBudget, LookAhead
from fairseq_aggdec.decoding.beam.roles import Planner
from fairseq_aggdec.engine.engines import Engines, LoadedDrafter
from fairseq_aggdec.generation.beam_generator import AggressiveBeamGenerator
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.generation.generator import AggressiveGenerator
from fairseq_aggdec.lab.bench.oracle import OracleGenerator, texts_to_copy, texts_to_propose
from tests.generation.test_beam_generator import assert_same_lists
from tests.generation.test_generator import assert_same_up_to_near_ties, decode
from tests.support.random_drafters import random_drafter
from tests.support.random_models import dictionary, random_batch, random_model, stock_beam_one

pytestmark = pytest.mark.usefixtures("either_engine")

WORDS = dictionary(40)
BLOCK = 6
LENGTHS = [9, 3, 12, 1, 7, 5, 11, 2]  # rows end at different times and leave
NEAR = 2e-5


def transformer(
    dim: int, ffn: int, heads: int, encoder_layers: int, decoder_layers: int, **shape: Any
) -> dict[str, Any]:
    """fairseq's options for a size."""
    sides = {"encoder": encoder_layers, "decoder": decoder_layers}
    sizes = {f"{side}_layers": layers for side, layers in sides.items()}
    for side in sides:
        sizes |= {f"{side}_embed_dim": dim, f"{side}_ffn_embed_dim": ffn, f"{side}_attention_heads": heads}
    return {**sizes, **shape}


def batch(rows: int) -> dict[str, Any]:
    return random_batch(rows, WORDS, [LENGTHS[row % len(LENGTHS)] for row in range(rows)])


def check(
    model: FairseqEncoderDecoderModel,
    rows: Sequence[int],
    drafter_heads: int,
    modes: Sequence[str] = ("greedy", "iad", "gad"),
    **sizes: Any,
) -> None:
    """All modes, batch after batch with the same engines, so that what one batch spoils the next one shows."""
    models, engines = [model], Engines()
    sizes = {**sizes, "decoder_attention_heads": drafter_heads}
    drafter = random_drafter("causal, post-norm sinusoidal", 1, WORDS, WORDS, BLOCK, **sizes)
    accepted = dict.fromkeys(modes, 0)
    for count in rows:
        sample = batch(count)
        stock = stock_beam_one(models, WORDS, sample, max_len_b=14)
        answers = {row: hypothesis["tokens"].tolist() for row, hypothesis in enumerate(stock)}
        vocabulary = range(WORDS.nspecial, len(WORDS))
        copies = texts_to_copy(answers, 0.15, vocabulary)
        proposals = texts_to_propose(answers, 3, BLOCK, vocabulary)
        for mode in modes:
            texts = proposals if mode == "gad" else copies
            kind = AggressiveGenerator.of if mode == "greedy" else partial(OracleGenerator.of, texts=texts)
            generator = kind(
                models,
                WORDS,
                decoding=mode,
                src_dict=WORDS,
                block_draft=BlockDraftOptions(LoadedDrafter(drafter), BLOCK) if mode == "gad" else None,
                engines=engines,
                max_len_b=14,
                drafts="whole",  # a batch this small would hardly draft
            )
            found = decode(generator, models, sample)
            assert_same_up_to_near_ties(found, stock, models, sample, NEAR)
            accepted[mode] += generator.totals.accepted
    assert all(accepted[mode] > 0 for mode in modes if mode != "greedy"), accepted


class ForesightedBeams(AggressiveBeamGenerator):
    """Beams that have the best hypothesis of each sentence scored before they look further ahead."""

    answers: Sequence[Sequence[int]] = ()

    def make_planner(self, *_: Any) -> Planner:
        return LookAhead(FixedBudget(24), self.answers)


def check_beams(model: FairseqEncoderDecoderModel, rows: Sequence[int]) -> None:
    """The same n-best lists as fairseq's, with steps on rows that were scored ahead."""
    options: dict[str, Any] = {"beam_size": 4, "max_len_b": 14}
    ours = ForesightedBeams.of([model], WORDS, src_dict=WORDS, decoding="aggressive-beam", **options)
    for count in rows:
        sample = batch(count)
        stock = SequenceGenerator([model], WORDS, **options).generate([model], sample)
        ours.answers = [n_best[0]["tokens"][:-1].tolist() for n_best in stock]
        assert_same_lists(ours.generate([model], sample), stock, rounding=5e-5)
    assert ours.totals.accepted > 0, ours.totals


@pytest.mark.parametrize("heads", [1, 3, 8, 16])
def test_heads_and_rows(heads: int) -> None:
    """Attention is computed in other ways from 16 heads of all rows on, and for a single query or row."""
    size = transformer(48, 64, heads, 2, 2)
    model = random_model(heads, WORDS, WORDS, 0.1, **size)
    check(model, (1, 2, 7, 32), 3 if heads == 16 else 16, **size)
    check_beams(model, (2, 7, 32, 1))


PRE_NORM = {"encoder_normalize_before": True, "decoder_normalize_before": True}


@pytest.mark.parametrize(
    ("size", "trained_in"),
    [
        (transformer(512, 2048, 8, 2, 6), torch.float16),
        (transformer(1024, 1024, 16, 1, 2, **PRE_NORM), torch.float32),
    ],
    ids=["six layers as wide as base, trained in fp16", "two as wide as big"],
)
def test_the_papers_widths(size: dict[str, Any], trained_in: torch.dtype) -> None:
    """Weights of these widths are prepacked, in 16 bits where these hold them, and their number of rows is rounded."""
    model = random_model(5, WORDS, WORDS, 0.1, **size).to(trained_in).float()
    drafter = {**size, "encoder_layers": 1, "decoder_layers": 1}
    check(model, (3, 1), size["decoder_attention_heads"] // 2, modes=("iad", "gad"), **drafter)
    check_beams(model, (3, 1))
