"""Models that a program has changed, and what else may come from one: stock fairseq's output, or an error."""

from typing import Any

import pytest
import torch
from fairseq.distributed import ModuleProxyWrapper
from fairseq.models.transformer import TransformerModel
from fairseq.sequence_generator import EnsembleModel
from torch import Tensor, nn
from torch.nn import functional as F

from fairseq_aggdec.engine.drafter import LoadedDrafter
from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.engine.supported_models import unsupported_encoder
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from tests.support.helpers import refused_with
from tests.support.random_models import random_batch, random_drafter, random_network
from tests.support.small_generators import (
    BATCH,
    BATCHES,
    MODES,
    WORDS,
    decoded,
    generator,
    small_model,
    stock,
    tokens,
)


class Holder(nn.Module):
    """As DistributedDataParallel, which needs processes."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module


class Cosine(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return 20 * F.linear(F.normalize(x, dim=-1), F.normalize(self.weight, dim=-1))


class Wrapped(nn.Module):
    """As LoRA in peft: another module with the weight of the one that it holds."""

    def __init__(self, base: nn.Linear, scale: float) -> None:
        super().__init__()
        self.base_layer = nn.Sequential(base)
        self.weight = base.weight
        self.bias = base.bias
        self.low_rank = nn.Parameter(scale * torch.randn(base.in_features, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.base_layer(x) + x @ self.low_rank


def wrap(model: Any, scale: float = 0.3) -> None:
    for stack in (model.encoder, model.decoder):
        stack.layers[0].fc1 = Wrapped(stack.layers[0].fc1, scale)


def wider_second_layer(model: Any) -> None:
    first = model.decoder.layers[0]
    dim = model.decoder.embed_dim
    first.fc1 = nn.Linear(dim, 2)
    first.fc2 = nn.Linear(2, dim)


def own_projection(model: Any) -> None:
    old = model.decoder.output_projection
    model.decoder.output_projection = Cosine(
        old.in_features, old.out_features, bias=False
    )
    model.decoder.output_projection.weight = old.weight


def hook(model: Any) -> None:
    """One within attention is called only where fairseq reads token by token, and one of the whole decoder never."""
    model.encoder.layers[0].register_forward_hook(
        lambda layer, inputs, output: 2 * output
    )
    model.decoder.layers[0].self_attn.v_proj.register_forward_hook(
        lambda layer, inputs, output: 2 * output
    )
    model.decoder.register_forward_hook(
        lambda decoder, inputs, output: (-output[0], *output[1:])
    )


def own_method(model: Any) -> None:
    layer = model.decoder.layers[0]
    forward = layer.forward
    layer.forward = lambda x, *args, **kwargs: forward(-x, *args, **kwargs)


def without_parameters(model: Any) -> None:
    for module in model.modules():
        for name, weight in list(module.named_parameters(recurse=False)):
            delattr(module, name)
            module.register_buffer(name, weight.detach())


def scaled_attention(model: Any) -> None:
    """fairseq follows it only where it reads token by token."""
    model.decoder.layers[0].self_attn.scaling *= 7


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "change",
    [
        wider_second_layer, own_projection, hook, own_method, wrap, scaled_attention, without_parameters,
    ],
)  # fmt: skip
def test_a_model_that_is_no_longer_plain_is_decoded_as_it_is(
    change: Any, mode: str
) -> None:
    model = small_model(encoder_attention_heads=4, encoder_ffn_embed_dim=64)
    with torch.no_grad():
        change(model)
    model.eval()
    for batch in (random_batch(1, WORDS, [30]), BATCH):
        assert decoded(generator([model], mode), batch) == stock(model, mode, batch)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_an_adapter_that_changes_half_precision_a_little_is_read(
    kind: torch.dtype, caplog: pytest.LogCaptureFixture
) -> None:
    """By less than the tolerance of the self-check."""
    model = small_model()
    part = "layers.0.fc1 of type Wrapped"
    wrap(model, 0.02)
    found = decoded(generator([model.to(kind)], "aggressive-beam"), BATCH)
    assert found == stock(model, "aggressive-beam", BATCH)
    assert (
        f"fairseq's own beam search decodes, because this plugin's engine does not support {part}"
        in caplog.text
    )
    assert unsupported_encoder(model.encoder) == part


def test_a_block_drafter_with_an_adapter_is_refused_by_name() -> None:
    drafter = random_drafter("causal, post-norm sinusoidal", 1, WORDS, 5)
    model = small_model()
    wrap(drafter)
    ours = generator(
        [model], "gad", block_draft=BlockDraftOptions(LoadedDrafter(drafter), 5)
    )
    with refused_with(
        r"cannot be used for decoding: .* not support layers\.0\.fc1 of type Wrapped"
    ):
        ours.generate([model], BATCH)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "wrap", [torch.compile, lambda model: ModuleProxyWrapper(Holder(model))]
)
def test_a_wrapped_model_is_decoded_as_what_it_holds(wrap: Any, mode: str) -> None:
    model = small_model()
    wrapped = wrap(model)
    assert decoded(generator([wrapped], mode), BATCH) == stock(model, mode, BATCH)


@pytest.mark.parametrize("mode", MODES)
def test_embeddings_that_come_with_the_source_are_read(mode: str) -> None:
    model = small_model()
    plain = stock(model, mode, BATCHES[1])
    net_input = BATCHES[1]["net_input"]
    given = torch.randn(
        *net_input["src_tokens"].shape, model.encoder.embed_tokens.embedding_dim
    )
    batch = {**BATCHES[1], "net_input": {**net_input, "token_embeddings": given}}
    expected = stock(model, mode, batch)
    assert expected != plain
    assert decoded(generator([model], mode), batch) == expected


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("mode", MODES)
def test_the_default_type_of_a_program_changes_nothing(
    mode: str, kind: torch.dtype
) -> None:
    batch = random_batch(1, WORDS, [3, 5, 2, 6, 1, 9] * 3)
    model = small_model()
    torch.set_default_dtype(kind)
    try:
        found = generator([model], mode).generate([model], batch)
        assert tokens(found) == stock(model, mode, batch)
    finally:
        torch.set_default_dtype(torch.float32)
    assert {
        hypothesis["positional_scores"].dtype
        for n_best in found
        for hypothesis in n_best
    } == {torch.float32}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("mode", MODES)
def test_an_export_to_torchscript_is_refused_by_name(mode: str) -> None:
    with refused_with(
        f"TorchScript cannot compile --decoding {mode}: export fairseq's own"
    ):
        torch.jit.script(generator([small_model()], mode))


def test_a_generator_keeps_its_models() -> None:
    ours = generator([small_model()], "iad")
    other = small_model(2)
    ours.model = EnsembleModel([other])
    with refused_with("the generator's models were replaced: make a new generator"):
        ours.generate([other], BATCH)


def quantised(model: Any) -> None:
    model.decoder = torch.ao.quantization.quantize_dynamic(
        model.decoder, {nn.Linear}, dtype=torch.qint8
    )


def other_symbols(model: Any) -> None:
    model.decoder.output_projection = nn.Linear(model.decoder.embed_dim, 10)


def own_probabilities(model: Any) -> None:
    model.get_normalized_probs = lambda *args, **kwargs: (
        TransformerModel.get_normalized_probs(model, *args, **kwargs)
    )


def not_from_left_to_right(model: Any) -> None:
    model.decoder = random_network("cmlm_transformer", 1, WORDS, WORDS).decoder


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize(
    "change, message",
    [
        (quantised, r"the decoder's layers.0.self_attn.k_proj is quantised by PyTorch"),
        (
            other_symbols,
            f"the model has 10 output symbols, and its dictionary {len(WORDS)}",
        ),
        (
            own_probabilities,
            "TransformerModel makes probabilities by a get_normalized_probs of its own",
        ),
        (
            not_from_left_to_right,
            "NATransformerDecoder does not write from left to right",
        ),
    ],
)
def test_what_neither_the_engine_nor_fairseq_in_blocks_can_follow_is_refused(
    change: Any, message: str
) -> None:
    model = small_model()
    change(model)
    with refused_with(message):
        generator([model], "greedy").generate([model], BATCH)


def test_a_decoder_that_is_in_an_ensemble_twice_is_refused() -> None:
    model = small_model(1)
    other = small_model(2)
    other.decoder = model.decoder
    with refused_with("has the same decoder twice"):
        generator([model, other], "greedy")


def test_engines_decode_with_dropout_only_where_it_is_asked_for() -> None:
    model = small_model(dropout=0.5)
    assert Engines().decoder(model.decoder) is not None
    for layer in model.decoder.layers:
        layer.dropout_module.apply_during_inference = True
    assert Engines().decoder(model.decoder) is None


@pytest.mark.usefixtures("either_engine")
@pytest.mark.parametrize("mode", MODES)
def test_a_word_that_overflows_spoils_nothing_that_does_not_follow_it(
    mode: str,
) -> None:
    """In half precision one may, in a draft or a hypothesis, and fairseq goes on without it."""
    model = small_model(3)
    word = WORDS.index("w3")
    with torch.no_grad():
        model.decoder.embed_tokens.weight[word] = float("nan")
    ours = generator([model], mode)
    batches = [random_batch(seed, WORDS, [5, 9, 12, 3]) for seed in range(3)]
    for batch in batches:
        source = batch["net_input"]["src_tokens"]
        source[source == word] = word + 1
        source[:, -3] = word
        assert decoded(ours, batch) == stock(model, mode, batch)


def test_log_probabilities_in_half_precision_are_refused() -> None:
    """fairseq takes the best sum of them, rounded anew at every token."""
    model = small_model(
        adaptive_softmax_cutoff="8,12", adaptive_softmax_dropout=0.0
    ).half()
    with refused_with(
        "adds up log-probabilities in half precision where an adaptive softmax"
    ):
        generator([model], "iad").generate([model], random_batch(1, WORDS, [4]))
