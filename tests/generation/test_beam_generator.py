"""The generator of n-best lists against fairseq's own, where tests/fuzzing does not look; and what it refuses."""

import functools
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.sequence_generator import SequenceGenerator

from fairseq_aggdec.engine.block_decoder import BlockDecoder
from fairseq_aggdec.engine.engines import Engines, LoadedDrafter
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation import beam_generator
from fairseq_aggdec.generation.beam_generator import AggressiveBeamGenerator
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from tests.support.random_drafters import random_drafter
from tests.support.random_models import (
    ENGINE_SHAPES,
    FALLBACK_SHAPES,
    dictionary,
    model_of_shape,
    random_batch,
    twin_words,
)

Models = list[FairseqEncoderDecoderModel]
Found = list[list[dict[str, Any]]]

WORDS = dictionary(30)


@functools.lru_cache(maxsize=200)
def cached_model(shape: str, seed: int) -> FairseqEncoderDecoderModel:
    positions = 24 if seed % 3 == 1 else 64
    eos_share = (0.1, 0.05, 0.2, 0.02)[seed % 4]
    return model_of_shape(shape, seed, WORDS, WORDS, eos_share, max_target_positions=positions)


def assert_same_lists(ours: Found, stock: Found, rounding: float = 2e-5) -> None:
    """Tokens and order equal, scores as near as single precision adds up; a near-tie would show with its scores."""
    for found, wanted in zip(ours, stock, strict=True):
        shown = [[(float(one["score"]), one["tokens"].tolist()) for one in outputs] for outputs in (found, wanted)]
        assert [tokens for _, tokens in shown[0]] == [tokens for _, tokens in shown[1]], shown
        for one, other in zip(found, wanted, strict=True):
            size = float(other["positional_scores"].abs().sum())  # of the sums whose differences these are
            near = rounding + 1e-6 * size
            torch.testing.assert_close(one["score"], other["score"].float(), atol=near, rtol=0.0)
            torch.testing.assert_close(
                one["positional_scores"], other["positional_scores"].float(), atol=near, rtol=0.0
            )


def beams(models: Models, size: int = 5, **options: Any) -> AggressiveBeamGenerator:
    return AggressiveBeamGenerator.of(
        models, WORDS, src_dict=WORDS, decoding="aggressive-beam", beam_size=size, **options
    )


def by_fairseq(models: Models, sample: dict[str, Any], size: int, **options: Any) -> Found:
    return SequenceGenerator(models, WORDS, beam_size=size, **options).generate(models, sample)


@pytest.mark.parametrize(
    ("shape", "budget"),
    [("causal, post-norm sinusoidal", None), ("causal, source copy", 30), ("bidirectional", 30), ("ordinary", 30)],
)
def test_a_random_drafter_changes_nothing(shape: str, budget: int | None) -> None:
    """It is asked behind whatever is best at the time, which need not go on from where it was asked before."""
    drafter = LoadedDrafter(
        model_of_shape("post-norm learned", 2, WORDS, WORDS, 0.1)
        if shape == "ordinary"
        else random_drafter(shape, 1, WORDS, WORDS, 6, transition_dim=8)
    )
    for seed, lengths in enumerate([[9], [5, 12, 1], [20, 3, 3, 7, 8]]):
        models, sample = [cached_model(ENGINE_SHAPES[seed], seed)], random_batch(seed, WORDS, lengths)
        generator = beams(models, 4, max_len_b=30, budget=budget, block_draft=BlockDraftOptions(drafter, 6))
        assert_same_lists(generator.generate(models, sample), by_fairseq(models, sample, 4, max_len_b=30))


@pytest.mark.parametrize("size", [3, 16, 17, 20])
def test_words_with_the_same_score(size: int) -> None:
    """fairseq's order is that of `topk`, and in the list of a beam of more than 16 that of an unstable sort."""
    words = dictionary(300)
    models, sample = [model_of_shape(ENGINE_SHAPES[0], size, words, words, 0.1)], random_batch(size, words, [3, 6, 9])
    twin_words(models[0])
    generator = AggressiveBeamGenerator.of(
        models, words, src_dict=words, decoding="aggressive-beam", beam_size=size, max_len_b=8
    )
    stock = SequenceGenerator(models, words, beam_size=size, max_len_b=8).generate(models, sample)
    assert any(len({float(one["score"]) for one in outputs}) < size for outputs in stock)
    assert_same_lists(generator.generate(models, sample), stock)


@pytest.mark.parametrize("backend", ["", "graphs"])
@pytest.mark.parametrize(("seed", "word"), [(0, 8), (0, 25), (2, 10)])
def test_a_hypothesis_that_overflows_takes_no_other_with_it(
    seed: int, word: int, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On graphs the others read what it has left in the cache of their sentence, with weight zero."""
    monkeypatch.setenv("AGGDEC_BACKEND", backend)
    model = model_of_shape(ENGINE_SHAPES[0], seed, WORDS, WORDS, 0.1, share_decoder_input_output_embed=False)
    with torch.no_grad():
        model.decoder.embed_tokens.weight[word] = torch.inf
    models, sample = [model], random_batch(seed, WORDS, [7, 5])
    stock = by_fairseq(models, sample, 4, max_len_b=10)
    for budget in (0, 16):
        assert_same_lists(beams(models, 4, max_len_b=10, budget=budget).generate(models, sample), stock)


def test_the_device_is_the_models_before_its_engines_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
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
    beams([cached_model(ENGINE_SHAPES[0], 1)], 3).generate([], random_batch(1, WORDS, [3]))


@pytest.mark.parametrize("budget", [0, 16])
def test_pythons_collector_waits_for_the_end_of_a_batch(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    right, on = BlockDecoder.verify_tree, list[bool]()

    def watched(*arguments: Any) -> Any:
        on.append(gc.isenabled())
        return right(*arguments)

    generator, sample = beams([cached_model(ENGINE_SHAPES[0], 1)], 3, budget=budget), random_batch(1, WORDS, [3])
    generator.generate([], sample)
    monkeypatch.setattr(BlockDecoder, "verify_tree", watched)
    generator.generate([], sample)
    assert set(on) == {False}
    assert gc.isenabled()


@pytest.mark.parametrize("shape", list(FALLBACK_SHAPES))
def test_other_decoders_are_searched_by_fairseq_itself(shape: str, caplog: pytest.LogCaptureFixture) -> None:
    models, sample = [cached_model(shape, 1)], random_batch(1, WORDS, [3, 9])
    generator = beams(models, 4)
    for _ in range(2):
        found = generator.generate(models, sample)
    assert_same_lists(found, by_fairseq(models, sample, 4))
    assert caplog.text.count("fairseq's own beam search decodes") == 1


def test_a_vocabulary_hardly_larger_than_the_beam_is_left_to_fairseq(caplog: pytest.LogCaptureFixture) -> None:
    words = dictionary(6)
    models, sample = [model_of_shape(ENGINE_SHAPES[0], 1, words, words, 0.1)], random_batch(1, words, [3, 9])
    generator = AggressiveBeamGenerator.of(models, words, src_dict=words, decoding="aggressive-beam", beam_size=8)
    assert_same_lists(
        generator.generate(models, sample), SequenceGenerator(models, words, beam_size=8).generate(models, sample)
    )
    assert "10 symbols, and a beam of 8" in caplog.text


def test_what_blocked_ngrams_cannot_do_is_said() -> None:
    """Where nothing can end, fairseq's own search stops with an AssertionError."""
    sample, options = random_batch(1, WORDS, [3]), {"no_repeat_ngram_size": 2, "block_ngrams": True}
    models: Models = [cached_model("adaptive softmax", 1)]
    with pytest.raises(AggdecError, match=r"--block-ngrams .* adaptive softmax"):
        beams(models, **options).generate(models, sample)
    models = [cached_model(ENGINE_SHAPES[0], 1)]
    prefix = torch.tensor([[5, 5, 5, 5, 5]])  # its own n-grams ban it
    with pytest.raises(AggdecError, match="no hypothesis is left"):
        beams(models, 3, **options).generate(models, sample, prefix_tokens=prefix)
