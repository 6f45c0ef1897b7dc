"""Whole batches by the kernels: every mode, beside fairseq, and to the last bit under --bit-exact."""

from typing import Any

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator

from fairseq_aggdec.engine.arithmetic import Arithmetic
from fairseq_aggdec.engine.cuda import backend, launching
from fairseq_aggdec.engine.cuda.backend import DecoderKernels
from fairseq_aggdec.engine.drafter import LoadedDrafter
from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.engine.graphs.runner import Graphs
from fairseq_aggdec.generation.beam_generator import AggressiveBeamGenerator
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.generation.generator import AggressiveGenerator
from tests.support.random_models import (
    dictionary,
    model_of_shape,
    random_batch,
    random_drafter,
)

WORDS = dictionary(20)
SHAPE = "post-norm sinusoidal"
SIZES: dict[str, Any] = {
    f"{side}_{name}": value
    for side in ("encoder", "decoder")
    for name, value in (
        ("embed_dim", 32),
        ("ffn_embed_dim", 32),
        ("attention_heads", 2),
        ("layers", 1),
    )
}
LENGTHS = [4, 2]
LIMIT: Any = {"max_len_b": 4}


@pytest.fixture(autouse=True)
def by_interpreted_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGGDEC_BACKEND", "cuda")


def half_model(**options: Any) -> Any:
    return model_of_shape(SHAPE, 1, WORDS, 0.1, **{**SIZES, **options}).half()


def kernels_of(model: Any) -> DecoderKernels | None:
    """The kernels of a model's captured passes."""
    engine = Engines().decoder(model.decoder)
    assert engine is not None
    assert isinstance(engine.runner, Graphs)
    return engine.runner.passes.kernels


def half_drafter() -> Any:
    return BlockDraftOptions(
        LoadedDrafter(random_drafter("causal, post-norm sinusoidal", 2, WORDS, 3)),
        3,
    )


def hypotheses(generator: Any) -> list[tuple[list[int], list[float]]]:
    found = generator.generate([], random_batch(3, WORDS, LENGTHS))
    return [
        (one["tokens"].tolist(), one["positional_scores"].tolist())
        for n_best in found
        for one in n_best
    ]


@pytest.mark.parametrize("mode", ["gad", "aggressive-beam"])
def test_each_mode_gives_fairseqs_output(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = half_model()
    layered = DecoderKernels.layered
    passes = []

    def counted(self: DecoderKernels, *arguments: Any, **options: Any) -> Any:
        passes.append(self)
        return layered(self, *arguments, **options)

    monkeypatch.setattr(DecoderKernels, "layered", counted)
    size = 2 if mode == "aggressive-beam" else 1
    stock = SequenceGenerator([model], WORDS, beam_size=size, **LIMIT)
    expected = hypotheses(stock)
    kind: Any = AggressiveGenerator if size == 1 else AggressiveBeamGenerator
    options: dict[str, Any] = (
        {"block_draft": half_drafter()} if size == 1 else {"beam_size": size}
    )
    found = hypotheses(
        kind.of([model], WORDS, src_dict=WORDS, decoding=mode, **options, **LIMIT)
    )
    assert passes, "nothing was computed by kernels"
    assert [tokens for tokens, _ in found] == [tokens for tokens, _ in expected]
    for (_, ours), (_, theirs) in zip(found, expected, strict=True):
        assert ours == pytest.approx(theirs, abs=2e-2)


@pytest.mark.usefixtures("products_as_on_tensor_cores")
def test_bit_exact_modes_have_the_bits_of_greedy_on_each_sentence_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Inside, layers may have more numbers than a projection may read."""
    for limit in ("_MOST_INPUTS", "_MOST_INNER"):
        monkeypatch.setattr(backend, limit, 32)
    model = half_model(decoder_ffn_embed_dim=48)
    engines = Engines(Arithmetic(bit_exact=True))

    def by(mode: str, **options: Any) -> AggressiveGenerator:
        return AggressiveGenerator.of(
            [model],
            WORDS,
            src_dict=WORDS,
            decoding=mode,
            engines=engines,
            **options,
            **LIMIT,
        )

    whole = random_batch(3, WORDS, LENGTHS)["net_input"]
    alone = []
    for row, length in enumerate(LENGTHS):
        source = {
            "src_tokens": whole["src_tokens"][[row], -length - 1 :],
            "src_lengths": torch.tensor([length + 1]),
        }
        ((best,),) = by("greedy").generate([], {"net_input": source})
        alone.append((best["tokens"].tolist(), best["positional_scores"].tolist()))
    assert hypotheses(by("gad", block_draft=half_drafter())) == alone


def test_a_model_that_is_unlike_fairseqs_leaves_the_kernels_to_others() -> None:
    odd = half_model()
    good = half_model()
    odd.decoder.layers[0].register_forward_hook(
        lambda module, inputs, output: (1.5 * output[0], *output[1:])
    )
    assert Engines().decoder(odd.decoder) is None
    assert launching.why_no_triton() is None
    assert kernels_of(good) is not None


def test_kernels_that_compute_something_else_are_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launching, "_failures", [])
    layered = DecoderKernels.layered
    monkeypatch.setattr(
        DecoderKernels,
        "layered",
        lambda *given, **options: 1.5 * layered(*given, **options),
    )
    assert kernels_of(half_model()) is None
    assert "log-probabilities that differ by" in str(launching.why_no_triton())


def test_a_kernel_that_fails_in_mid_run_is_not_used_again_by_its_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = half_model()
    generator = AggressiveGenerator.of(
        [model], WORDS, src_dict=WORDS, decoding="greedy", **LIMIT
    )
    expected = hypotheses(generator)
    passes: list[int] = []

    def failing(*_: Any, **__: Any) -> Any:
        passes.append(1)
        raise KeyError("as Triton's errors, no RuntimeError")

    with monkeypatch.context() as patch:
        patch.setattr(DecoderKernels, "layered", failing)
        for _ in range(2):
            assert [tokens for tokens, _ in hypotheses(generator)] == [
                tokens for tokens, _ in expected
            ]
    assert len(passes) == 1
    assert kernels_of(half_model()) is not None


def test_wide_layers_are_computed_by_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_MOST_INNER", 32)
    assert kernels_of(half_model()) is not None
    assert kernels_of(half_model(decoder_ffn_embed_dim=48)) is None
