"""Steps in fixed shapes over fixed memory, recorded and repeated, without a GPU.

A CUDA graph repeats operations on the very memory of its recording; nothing that Python does is repeated. So do the
recorders here: one lets a function run once and repeats the operations that were seen, another runs it on tensors that
have a device and a shape, and no numbers (`tests.fake_gpu`), where whatever needs a number on the host fails.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from fairseq import utils
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from fairseq_aggdec.decoding.acceptance import exact
from fairseq_aggdec.drafters import LoadedDrafter
from fairseq_aggdec.engine.block_decoder import BlockDecoder
from fairseq_aggdec.engine.cuda_graph import CudaGraphs, Replay, Results
from fairseq_aggdec.engine.draft_decoder import DraftDecoder
from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.engine.precision import Arithmetic
from fairseq_aggdec.engine.proposing_decoder import ProposingDecoder
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generator import AggressiveGenerator, BlockDraftOptions
from tests.fake_gpu import GPU, fake_gpu, to_fake_gpu
from tests.random_blockwise import HEAD_KINDS, random_blockwise
from tests.random_drafters import DRAFTER_SHAPES, random_drafter
from tests.random_models import ENGINE_SHAPES, model_of_shape, random_batch
from tests.recorders import (
    ANY_DRAFTER,
    AS_ON_A_GPU,
    LONGEST,
    ONE,
    SEVERAL,
    Made,
    Recorder,
    Tracer,
    check,
    decode_all,
    samples,
)
from tests.test_generator import JOINED, Hypothesis, Models, cached_model, decode
from tests.test_generator_gad import cached_drafter


@pytest.mark.parametrize(
    ("shape", "decoding", "drafter"),
    [
        *[
            (shape, ("gad", "iad", "greedy")[number % 3], list(DRAFTER_SHAPES)[number % 3])
            for number, shape in enumerate(ENGINE_SHAPES)
        ],
        (ENGINE_SHAPES[1], "hybrid", ANY_DRAFTER),
    ],
)
def test_outputs_are_fairseqs(shape: str, decoding: str, drafter: str) -> None:
    """Batch after batch over the same memory, in every shape of model."""
    models, made = [cached_model(shape, 1 + ENGINE_SHAPES.index(shape))], Made(Recorder)
    for batches in (ONE, SEVERAL):
        check(models, batches, decode_all(models, made, batches, decoding, drafter))
    assert len(made.recorders) == (4 if decoding in ("gad", "hybrid") else 2)  # those of verifier and drafter
    assert all(recorder.repeated > recorder.recorded > 0 for recorder in made.recorders)


@pytest.mark.parametrize(
    ("decoding", "drafter", "batches"),
    [
        ("greedy", None, ONE), ("greedy", None, SEVERAL), ("iad", None, SEVERAL), ("gad", ANY_DRAFTER, ONE),
        ("gad", ANY_DRAFTER, SEVERAL[:3]), ("gad", "bidirectional", SEVERAL[1:2]),
    ],
)  # fmt: skip
def test_nothing_hangs_on_what_python_knew(
    decoding: str, drafter: str | None, batches: Sequence[Sequence[int]]
) -> None:
    """Lengths, positions, rows, drafts and sources all change behind the back of what was recorded."""
    models, made = [cached_model("pre-norm learned, layernorm_embedding", 3)], Made(Tracer)
    found = decode_all(models, made, batches, decoding, drafter)
    check(models, batches, found)
    assert all(recorder.repeated > recorder.recorded > 0 for recorder in made.recorders)
    if decoding == "gad":  # which would hide wrong drafts
        assert drafts(found) == drafts(decode_all(models, None, batches, decoding, drafter))


@pytest.mark.parametrize("kind", list(HEAD_KINDS)[:2])
def test_proposal_heads(kind: str) -> None:
    models: Models = [random_blockwise("post-norm sinusoidal", kind, 1, JOINED, JOINED, 4, eos_share=0.05)]
    made = Made(Tracer if kind == next(iter(HEAD_KINDS)) else Recorder)
    for batches in (ONE[:1], SEVERAL[:2]):
        found = decode_all(models, made, batches, "blockwise")
        check(models, batches, found)
        assert drafts(found) == drafts(decode_all(models, None, batches, "blockwise"))
    assert made.repeated > made.recorded > 0


def drafts(decoded: list[list[Hypothesis]]) -> list[list[int]]:
    history = [draft for batch in decoded for hypothesis in batch for draft in hypothesis["history"]]
    return [draft["tokens"].tolist() for draft in history]


def test_a_drafter_alone() -> None:
    drafter, made = ANY_DRAFTER, Made(Recorder)
    found = decode_all([cached_model(ENGINE_SHAPES[0], 1)], made, SEVERAL, "nar", drafter)
    expected = decode_all([cached_model(ENGINE_SHAPES[0], 1)], None, SEVERAL, "nar", drafter)
    assert made.repeated > 0
    for mine, theirs in zip(found, expected, strict=True):
        assert [one["tokens"].tolist() for one in mine] == [one["tokens"].tolist() for one in theirs]


def test_drafts_of_several_lengths() -> None:
    """In blocks of the same shape; what a transition head chooses token by token is recorded too."""
    drafter = random_drafter(ANY_DRAFTER, 1, JOINED, JOINED, 30, transition_dim=8, max_target_positions=64)
    batch = random_batch(1, JOINED, [4, 6, 3])
    encoded = drafter.encoder(**batch["net_input"])
    tokens = torch.randint(4, len(JOINED), (3, 12), generator=torch.Generator().manual_seed(1))
    made = Made(Tracer)
    engines = [DraftDecoder(drafter.decoder, Arithmetic(capture=capture)) for capture in (None, made)]
    drafted = []
    with torch.no_grad():
        for engine in engines:
            engine.start(encoded)
            calls = (([1, 1, 1], 5), ([3, 2, 4], 4), ([5, 5, 6], 5), ([7, 6, 8], 4))
            drafted.append([engine.draft(tokens, torch.tensor(n), size, n).clone() for n, size in calls])
    assert all(map(torch.equal, *drafted))
    assert (made.recorded, made.repeated) == (2, 4)


def test_sources_are_copied_without_recording() -> None:
    """Masks that look into the source are found by numbers that the host has to know."""
    models, made = [cached_model(ENGINE_SHAPES[0], 1)], Made(Recorder)
    check(models, SEVERAL[:1], decode_all(models, made, SEVERAL[:1], "gad", "causal, source copy"))
    assert len(made.recorders) == 1


def test_an_ensemble() -> None:
    models, made = [cached_model(ENGINE_SHAPES[number], 1) for number in (0, 2)], Made(Recorder)
    check(models, SEVERAL, decode_all(models, made, SEVERAL, "iad"))
    assert [recorder.repeated > 0 for recorder in made.recorders] == [True, True]


class _OnGpuOnly(TorchDispatchMode):
    """Fails where an operation reads or makes a tensor elsewhere: a recording cannot wait for the host."""

    def __torch_dispatch__(
        self, function: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        results = function(*args, **(kwargs or {}))
        for value in tree_leaves((args, kwargs, results)):
            assert not isinstance(value, Tensor) or value.device == GPU, f"{function}: a tensor on {value.device}"
        return results


class NumberlessRecorder(Recorder):
    """Runs functions on fake tensors of a GPU."""

    def record(self, function: Callable[[], Results]) -> Replay:
        with _OnGpuOnly():
            results = function()
        assert all(result.device == GPU for result in results)
        return lambda: results


def on_gpu(shape: Sequence[int], dtype: torch.dtype = torch.long) -> Tensor:
    return torch.zeros(*shape, dtype=dtype, device=GPU)


def encoded_on_gpu(rows: int, dtype: torch.dtype) -> dict[str, list[Tensor]]:
    return {"encoder_out": [on_gpu((7, rows, 16), dtype)], "encoder_padding_mask": [on_gpu((rows, 7), torch.bool)]}


@pytest.mark.parametrize("shape", ENGINE_SHAPES)
def test_a_step_asks_the_gpu_for_no_number(shape: str) -> None:
    model, recorder = model_of_shape(shape, 1, JOINED, JOINED), NumberlessRecorder()
    dtype = (torch.float16, torch.bfloat16)[len(shape) % 2]
    with fake_gpu():
        to_fake_gpu(model, dtype)
        engine = BlockDecoder(model.decoder, arithmetic=Arithmetic(capture=lambda _: recorder))
        for rows in (1, 3):
            engine.start(encoded_on_gpu(rows, dtype))
            logits = engine.score(on_gpu((rows, 5)), on_gpu((rows,)), 9)
            assert (logits.device, logits.dtype, logits.shape) == (GPU, dtype, (rows, 5, len(JOINED)))
    assert recorder.recorded == 2


@pytest.mark.parametrize("transition_dim", [0, 8])
@pytest.mark.parametrize("shape", [ANY_DRAFTER, "bidirectional"])
def test_nor_does_a_draft(shape: str, transition_dim: int) -> None:
    drafter = random_drafter(shape, 1, JOINED, JOINED, 30, transition_dim=transition_dim)
    recorder = NumberlessRecorder()
    with fake_gpu():
        to_fake_gpu(drafter, torch.float16)
        engine = DraftDecoder(drafter.decoder, Arithmetic(capture=lambda _: recorder))
        for rows in (1, 3):
            engine.start(encoded_on_gpu(rows, torch.float16))
            drafted = engine.draft(on_gpu((rows, 9)), on_gpu((rows,)), 6, [1] * rows)
            assert (drafted.device, drafted.shape) == (GPU, (rows, 6))
    assert recorder.recorded == 2


def test_nor_do_proposal_heads() -> None:
    model = random_blockwise("post-norm sinusoidal", next(iter(HEAD_KINDS)), 1, JOINED, JOINED, 4)
    recorder = NumberlessRecorder()
    with fake_gpu():
        to_fake_gpu(model, torch.float16)
        engine = ProposingDecoder(model.decoder, Arithmetic(capture=lambda _: recorder))
        engine.start(encoded_on_gpu(3, torch.float16))
        engine.score(on_gpu((3, 5)), on_gpu((3,)), 9)
    assert recorder.recorded == 1


@pytest.mark.parametrize(
    "step",
    [
        lambda x: x.sum().item(), lambda x: bool(x.any()), lambda x: x.nonzero(), lambda x: x.tolist(),
        lambda x: x + torch.ones(2), lambda x: x.cpu(),
    ],
)  # fmt: skip
def test_a_step_that_did_would_be_seen(step: Callable[[Tensor], Any]) -> None:
    with fake_gpu():
        x = on_gpu((2,))
        with pytest.raises((RuntimeError, AssertionError)):
            NumberlessRecorder()(lambda: (step(x),))


DEVICES = ["cpu", *["cuda"] * torch.cuda.is_available()]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("device", DEVICES)
def test_recorded_is_as_computed(device: str, dtype: torch.dtype) -> None:
    """With CUDA graphs where there is a GPU."""
    models: Models = [copy.deepcopy(cached_model(ENGINE_SHAPES[3], 2)).to(device, dtype)]
    drafter = LoadedDrafter(copy.deepcopy(cached_drafter("causal, pre-norm sinusoidal", 2)))
    for decoding in ("greedy", "iad", "gad"):
        block = BlockDraftOptions(drafter, 6, exact) if decoding == "gad" else None
        common: dict[str, Any] = {"src_dict": JOINED, "decoding": decoding, "block_draft": block, **AS_ON_A_GPU}
        generators = [
            AggressiveGenerator(models, JOINED, engines=Engines(Arithmetic(capture=capture)), **common, **LONGEST)
            for capture in (None, CudaGraphs if device == "cuda" else Recorder)
        ]
        for sample in samples([*ONE, *SEVERAL, *ONE]):
            on_device = utils.apply_to_sample(lambda tensor: tensor.to(device), sample)
            expected, found = (decode(generator, models, on_device) for generator in generators)
            for mine, theirs in zip(found, expected, strict=True):
                assert mine["tokens"].tolist() == theirs["tokens"].tolist()
                torch.testing.assert_close(mine["score"], theirs["score"], atol=1e-3, rtol=1e-3)


def test_refused_without_a_gpu() -> None:
    with pytest.raises(AggdecError, match="--cuda-graphs needs a GPU, and the model is on cpu"):
        Engines(Arithmetic(capture=CudaGraphs)).decoder(cached_model(ENGINE_SHAPES[0], 1).decoder)


@pytest.mark.parametrize("shape", ["adaptive softmax", "lightweight convolutions"])
def test_refused_where_there_is_no_engine(shape: str) -> None:
    model = model_of_shape(shape, 1, JOINED, JOINED)
    with pytest.raises(AggdecError, match="--cuda-graphs needs this plugin's engine"):
        Engines(Arithmetic(capture=CudaGraphs)).decoder(model.decoder)


def test_off_by_default() -> None:
    engine = Engines().decoder(cached_model(ENGINE_SHAPES[0], 1).decoder)
    assert engine is not None
    assert engine.fixed_steps is None
