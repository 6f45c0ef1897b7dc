"""The generator of n-best lists against fairseq's own, where tests/fuzzing does not look; and what it refuses."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator

from fairseq_aggdec.decoding.beam import plain, search
from fairseq_aggdec.engine import choose_backend
from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation import beam_generator
from fairseq_aggdec.generation.drafting import Drafting
from fairseq_aggdec.scheduling.costs import Costs
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
    models, sample = (
        [model_of_shape(ENGINE_SHAPES[0], size, words, words, 0.1)],
        random_batch(size, words, [3, 6, 9]),
    )
    twin_words(models[0])
    found = generator(
        models, MODE, words, beam_size=size, max_len_b=8, budget=budget
    ).generate(models, sample)
    stock = assert_fairseqs(found, models, words, sample, size, near_tie=0, max_len_b=8)
    assert any(
        len({float(one["score"]) for one in outputs}) < size for outputs in stock
    )


@pytest.mark.parametrize("budget", [0, 16])
def test_on_a_gpu_equal_sums_keep_their_order(
    budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There fairseq's own order is no promise, and to find it would take longer than a pass."""

    def nobody(*arguments: Any) -> Any:
        raise AssertionError("all sums of a sentence were sorted")

    monkeypatch.setenv("AGGDEC_BACKEND", "graphs")
    monkeypatch.setattr(choose_backend, "runs_async", lambda device: True)
    for module in (plain, search):
        monkeypatch.setattr(module, "best_of_all", nobody)
    words = dictionary(300)
    models, sample = (
        [model_of_shape(ENGINE_SHAPES[0], 3, words, words, 0.1)],
        random_batch(3, words, [3, 6, 9]),
    )
    twin_words(models[0])
    found = generator(
        models, MODE, words, beam_size=3, max_len_b=8, budget=budget
    ).generate(models, sample)
    stock = SequenceGenerator(
        models, words, beam_size=3, max_len_a=0, max_len_b=8
    ).generate(models, sample)
    for ours, right in zip(found, stock, strict=True):
        scores = [float(one["score"]) for one in right]
        assert [float(one["score"]) for one in ours] == pytest.approx(scores, abs=1e-5)
        assert len(set(scores)) < len(scores)


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
        ours, drafted = generator(models, MODE, beam_size=5), [0]
        for sample in (alone, alone, two):
            ours.generate(models, sample)
            drafted.append(ours.totals.drafted)
        _, first, second, last = drafted
        assert first > 0, "it begins by trying"
        assert (second > first) == looks_ahead
        assert last == second, "two beams of five are ten rows"


@pytest.mark.parametrize("backend", ["", "graphs"])
@pytest.mark.parametrize(("seed", "word"), [(0, 8), (2, 10)])
def test_a_hypothesis_that_overflows_takes_no_other_with_it(
    seed: int, word: int, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On graphs the others read what it has left in the cache of their sentence, with weight zero."""
    monkeypatch.setenv("AGGDEC_BACKEND", backend)
    model = model_of_shape(
        ENGINE_SHAPES[0],
        seed,
        WORDS,
        WORDS,
        0.1,
        share_decoder_input_output_embed=False,
    )
    with torch.no_grad():
        model.decoder.embed_tokens.weight[word] = torch.inf
    models, sample = [model], random_batch(seed, WORDS, [7, 5])
    for budget in (0, 16):
        found = generator(
            models, MODE, beam_size=4, max_len_b=10, budget=budget
        ).generate(models, sample)
        assert_fairseqs(found, models, WORDS, sample, 4, max_len_b=10)


def test_the_device_is_the_models_before_its_engines_are_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kernels are launched on the current one."""
    entered: list[torch.device] = []

    @contextmanager
    def on_device(device: torch.device) -> Iterator[None]:
        entered.append(device)
        yield

    def unsupported(self: Engines, decoder: Any) -> str:
        assert entered == [torch.device("cpu")]
        return "nothing"

    monkeypatch.setattr(beam_generator, "on_device", on_device)
    monkeypatch.setattr(Engines, "unsupported", unsupported)
    generator([cached_model(ENGINE_SHAPES[0], 1, 30)], MODE).generate(
        [], random_batch(1, WORDS, [3])
    )


@pytest.mark.parametrize(
    ("shape", "words", "reason"),
    [
        ("adaptive softmax", 30, "adaptive softmax"),
        (ENGINE_SHAPES[0], 6, "10 symbols, and a beam of 8"),
    ],
)
def test_what_is_searched_by_fairseq_itself_is_said_once(
    shape: str, words: int, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    symbols = dictionary(words)
    models, sample = [cached_model(shape, 1, words)], random_batch(1, symbols, [3, 9])
    ours = generator(models, MODE, symbols, beam_size=8)
    for _ in range(2):
        found = ours.generate(models, sample)
    assert_fairseqs(found, models, symbols, sample, 8, max_len_b=20)
    assert caplog.text.count("fairseq's own beam search decodes") == 1
    assert reason in caplog.text


def test_what_blocked_ngrams_cannot_do_is_said() -> None:
    """Where nothing can end, fairseq's own search stops with an AssertionError."""
    sample, options = (
        random_batch(1, WORDS, [3]),
        {"no_repeat_ngram_size": 2, "block_ngrams": True},
    )
    models = [cached_model("adaptive softmax", 1, 30)]
    with pytest.raises(AggdecError, match=r"--block-ngrams .* adaptive softmax"):
        generator(models, MODE, **options).generate(models, sample)
    models = [cached_model(ENGINE_SHAPES[0], 1, 30)]
    prefix = torch.tensor([[5, 5, 5, 5, 5]])  # its own n-grams ban it
    with pytest.raises(AggdecError, match="no hypothesis is left"):
        generator(models, MODE, **options).generate(
            models, sample, prefix_tokens=prefix
        )
