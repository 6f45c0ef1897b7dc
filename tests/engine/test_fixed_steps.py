"""The shapes and the memory of steps that are recorded: what changes behind their back, and what does not."""

import pytest
import torch

from fairseq_aggdec.engine import fixed_steps
from fairseq_aggdec.engine.block_decoder import BlockDecoder
from fairseq_aggdec.engine.fixed_steps import power_of_two
from fairseq_aggdec.engine.precision import Arithmetic
from tests.random_models import ENGINE_SHAPES, model_of_shape, random_batch
from tests.recorders import ANY_DRAFTER, SEVERAL, Made, Recorder, Tracer, check, decode_all
from tests.test_generator import JOINED, cached_model
from tests.test_generator_precision import assert_same_bits


def test_recorders_of_these_tests_are_strict() -> None:
    """What a number on the host has decided stays decided, and results do not outlive the next run."""
    tracer, source = Tracer(), torch.zeros(3)
    length = [1]
    first, second = tracer(lambda: (source[: length[0]] + 1,)), tracer(lambda: (source + 2,))
    result = first()[0]
    assert result.tolist() == [1]
    length[0] = 2
    source.add_(1)
    assert first()[0] is result
    assert result.tolist() == [2]
    second()
    assert result.isnan().all()


def test_large_blocks_and_many_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks computed as they come in between, recordings that make room and memory that grows."""
    monkeypatch.setattr(fixed_steps, "_MOST_TOKENS", 32)
    monkeypatch.setattr(fixed_steps, "_MOST_STEPS", 2)
    monkeypatch.setattr(fixed_steps, "_CAPACITY", 8)
    monkeypatch.setattr(fixed_steps, "_LEAST_KEYS", 8)
    models, made = [cached_model(ENGINE_SHAPES[0], 1)], Made(Tracer)
    for decoding in ("iad", "gad"):
        check(models, SEVERAL[:3], decode_all(models, made, SEVERAL[:3], decoding, ANY_DRAFTER, block_size=12))
    assert made.repeated > made.recorded > 2


def test_positions_far_behind() -> None:
    """Other recordings where more positions are attended to; all anew behind 256, where there is no room at first."""
    model, made = model_of_shape("post-norm sinusoidal", 1, JOINED, JOINED, max_target_positions=700), Made(Tracer)
    plain, fixed = (BlockDecoder(model.decoder, arithmetic=Arithmetic(capture=c)) for c in (None, made))
    encoded = model.encoder(**random_batch(1, JOINED, [3, 4])["net_input"])
    text = torch.randint(4, len(JOINED), (2, 600), generator=torch.Generator().manual_seed(1))
    blocks = [(0, 40), (40, 3), (43, 3), (46, 54), (100, 3), (103, 64), (167, 64), (231, 16), (247, 6)]
    blocks += [(253, 3), (256, 144), (400, 3)]  # behind 256: the padding of the first of these
    with torch.no_grad():
        for verifier in (plain, fixed):
            verifier.start(encoded)
        for start, width in blocks:
            starts = [start, max(0, start - 5)]
            block = torch.stack([row[first : first + width] for row, first in zip(text, starts, strict=True)])
            expected = plain.score(block, torch.tensor(starts), start)
            found = fixed.score(block, torch.tensor(starts), start)
            torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    assert made.recorded == 9  # widths at positions: 64 and 4 at 64 and 128; 64, 16 and 8 at 256; 4 and 256 at 512


def test_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under --bit-exact, with and without recording: the shapes are other ones of the same kind."""
    monkeypatch.setattr(fixed_steps, "_MOST_TOKENS", 64)  # wider blocks as they come
    models, made = [cached_model(ENGINE_SHAPES[0], 1)], Made(Recorder)
    batches = SEVERAL[:2]
    expected = decode_all(models, None, batches, "greedy", arithmetic=Arithmetic(bit_exact=True))
    for decoding in ("greedy", "iad", "gad"):
        arithmetic = Arithmetic(bit_exact=True, capture=made)
        found = decode_all(models, made, batches, decoding, ANY_DRAFTER, arithmetic)
        for mine, theirs in zip(found, expected, strict=True):
            assert_same_bits(mine, theirs)


def test_nothing_is_left_of_a_broken_sentence() -> None:
    """Its scores were no numbers, and all that is fixed in memory was written by it."""
    model, made = cached_model(ENGINE_SHAPES[0], 1), Made(Recorder)
    engine = BlockDecoder(model.decoder, arithmetic=Arithmetic(capture=made))
    encoded = model.encoder(**random_batch(1, JOINED, [30, 30, 30])["net_input"])
    short = model.encoder(**random_batch(2, JOINED, [3, 2])["net_input"])
    block, starts = torch.full((3, 16), 5), torch.zeros(3, dtype=torch.long)
    with torch.no_grad():
        engine.start(short)
        expected = engine.score(block[:2, :3], starts[:2], 0).clone()
        broken = {**encoded, "encoder_out": [torch.full_like(encoded["encoder_out"][0], float("nan"))]}
        engine.start(broken)
        assert engine.score(block, starts, 0).isnan().all()
        engine.start(short)
        torch.testing.assert_close(engine.score(block[:2, :3], starts[:2], 0), expected)


def test_powers_of_two() -> None:
    assert [power_of_two(count) for count in (1, 2, 3, 4, 5, 8, 9, 64, 65)] == [1, 2, 4, 4, 8, 8, 16, 64, 128]
    assert [power_of_two(count, 8) for count in (1, 8, 9)] == [8, 8, 16]
