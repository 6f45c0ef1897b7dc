"""The generator of n-best lists against fairseq's own, where tests/fuzzing does not look; and what it refuses."""

import pytest
import torch

from fairseq_aggdec.generation import beam_generator
from fairseq_aggdec.generation.drafting import Drafting
from fairseq_aggdec.scheduling.costs import Costs
from tests.support.helpers import refused_with
from tests.support.oracle import assert_fairseqs
from tests.support.random_models import (
    ENGINE_SHAPES,
    dictionary,
    model_of_shape,
    random_batch,
    twin_words,
)
from tests.support.small_generators import WORDS, cached_model, generator

MODE = "aggressive-beam"


@pytest.mark.parametrize("budget", [0, 16])
@pytest.mark.parametrize("size", [3, 16, 17, 20])
def test_words_with_the_same_score(size: int, budget: int) -> None:
    """fairseq's order is that of `topk`, and in the list of a beam of more than 16 that of an unstable sort."""
    words = dictionary(300)
    models = [model_of_shape(ENGINE_SHAPES[0], size, words, 0.1)]
    sample = random_batch(size, words, [3, 6, 9])
    twin_words(models[0])
    found = generator(
        models, MODE, words, beam_size=size, max_len_b=8, budget=budget
    ).generate(models, sample)
    stock = assert_fairseqs(found, models, words, sample, size, near_tie=0, max_len_b=8)
    assert any(
        len({float(one["score"]) for one in outputs}) < size for outputs in stock
    )


def test_it_looks_ahead_where_outputs_resemble_their_sources(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And where a pass costs as much before its first prefix as one and a half beams of each sentence."""
    monkeypatch.setattr(Drafting, "costs", Costs(1.0, free=9.0))
    models = [cached_model(ENGINE_SHAPES[0], 1, 30)]
    alone = random_batch(0, WORDS, [7])
    two = random_batch(1, WORDS, [7, 5])
    for share, looks_ahead in ((0.0, True), (1.1, False)):
        monkeypatch.setattr(beam_generator, "_LEAST_SHARE", share)
        ours = generator(models, MODE, beam_size=5)
        drafted = [0]
        for sample in (alone, alone, two):
            ours.generate(models, sample)
            drafted.append(ours.totals.drafted)
        _, first, second, last = drafted
        assert first > 0, "it begins by trying"
        assert (second > first) == looks_ahead
        assert last == second, "two beams of five are ten rows"


@pytest.mark.parametrize("backend", ["", "graphs"])
@pytest.mark.parametrize("seed, word", [(0, 8), (2, 10)])
def test_a_hypothesis_that_overflows_takes_no_other_with_it(
    seed: int, word: int, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On graphs the others read what it has left in the cache of their sentence, with weight zero."""
    monkeypatch.setenv("AGGDEC_BACKEND", backend)
    model = model_of_shape(
        ENGINE_SHAPES[0],
        seed,
        WORDS,
        0.1,
        share_decoder_input_output_embed=False,
    )
    with torch.no_grad():
        model.decoder.embed_tokens.weight[word] = torch.inf
    models = [model]
    sample = random_batch(seed, WORDS, [7, 5])
    for budget in (0, 16):
        found = generator(
            models, MODE, beam_size=4, max_len_b=10, budget=budget
        ).generate(models, sample)
        assert_fairseqs(found, models, WORDS, sample, 4, max_len_b=10)


@pytest.mark.parametrize(
    "shape, words, reason",
    [
        ("adaptive softmax", 30, "adaptive softmax"),
        (ENGINE_SHAPES[0], 6, "10 symbols, and a beam of 8"),
    ],
)
def test_what_is_searched_by_fairseq_itself_is_said_once(
    shape: str, words: int, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    symbols = dictionary(words)
    models = [cached_model(shape, 1, words)]
    sample = random_batch(1, symbols, [3, 9])
    ours = generator(models, MODE, symbols, beam_size=8)
    for _ in range(2):
        found = ours.generate(models, sample)
    assert_fairseqs(found, models, symbols, sample, 8, max_len_b=20)
    assert caplog.text.count("fairseq's own beam search decodes") == 1
    assert reason in caplog.text


def test_what_blocked_ngrams_cannot_do_is_said() -> None:
    """Where nothing can end, fairseq's own search stops with an AssertionError."""
    sample = random_batch(1, WORDS, [3])
    options = {"no_repeat_ngram_size": 2, "block_ngrams": True}
    models = [cached_model("adaptive softmax", 1, 30)]
    with refused_with(r"--block-ngrams .* adaptive softmax"):
        generator(models, MODE, **options).generate(models, sample)
    models = [cached_model(ENGINE_SHAPES[0], 1, 30)]
    prefix = torch.tensor([[5, 5, 5, 5, 5]])  # its own n-grams ban it
    with refused_with("no hypothesis is left"):
        generator(models, MODE, **options).generate(
            models, sample, prefix_tokens=prefix
        )
