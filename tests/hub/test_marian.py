"""Marian's and Pegasus's checkpoints become models of fairseq that all modes decode."""

import copy
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models import build_model
from omegaconf import OmegaConf
from torch import Tensor

from fairseq_aggdec.engine.drafter import LoadedDrafter
from fairseq_aggdec.engine.supported_models import check_weights
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.hub.marian import FAMILIES
from tests.support.oracle import assert_fairseqs
from tests.support.random_models import dictionary, random_batch, random_model
from tests.support.small_generators import generator

ROWS, DIM, LAST = 30, 16, 29
SIZES = {f"{side}_{name}": size for side in ("encoder", "decoder")
         for name, size in (("layers", 2), ("ffn_dim", 32), ("attention_heads", 2))}  # fmt: skip
CONFIG = SIZES | {"vocab_size": ROWS, "d_model": DIM, "max_position_embeddings": 40, "scale_embedding": True}
MARIAN = {"eos_token_id": 0, "pad_token_id": LAST, "decoder_start_token_id": LAST, "activation_function": "swish"}
PEGASUS = {"eos_token_id": 1, "pad_token_id": 0, "decoder_start_token_id": 0, "activation_function": "relu"}
OF_MARIAN = ["</s>", "<unk>", *(f"▁{n}" for n in range(27)), "<pad>"]
SIDES = {
    "marian": [OF_MARIAN],
    "marian, two vocabularies": [OF_MARIAN, [*OF_MARIAN[:2], *OF_MARIAN[-2:1:-1], "<pad>"]],
    "pegasus": [["<pad>", "</s>", *(f"▁{n}" for n in range(17)), "<unk>", *(f"{n}" for n in range(10))]],
}


def checkpoint(name: str) -> tuple[str, dict[str, Any], dict[str, Tensor]]:
    """The family, config.json's content, and random weights as `read_weights` names them."""
    family, is_joined = name.split(",")[0], len(SIDES[name]) == 1
    config = CONFIG | (MARIAN if family == "marian" else PEGASUS) | {"model_type": family}
    pre_norm = dict.fromkeys(("encoder_normalize_before", "decoder_normalize_before"), family == "pegasus")
    model = random_model(1, dictionary(ROWS), dictionary(ROWS), **pre_norm)
    weights = {key: weight for key, weight in model.state_dict().items() if "layer" in key}
    for matrix in ["shared"] if is_joined else ["encoder.embed_tokens", "decoder.embed_tokens"]:
        weights[f"{matrix}.weight"] = torch.randn(ROWS, DIM) / 2
    weights["final_logits_bias"] = torch.randn(1, ROWS)
    return family, config | {"share_encoder_decoder_embeddings": is_joined}, weights


@pytest.mark.parametrize("name", SIDES)
def test_every_mode_decodes_as_fairseq(name: str) -> None:
    family, config, weights = checkpoint(name)
    converted = FAMILIES[family](config, weights, *SIDES[name])
    source, target = Dictionary(), Dictionary()
    for words, symbols in ((source, converted.symbols), (target, converted.target_symbols or converted.symbols)):
        for symbol in symbols[words.nspecial :]:
            words.add_symbol(symbol)
        assert words.symbols == symbols
    task: Any = SimpleNamespace(source_dictionary=source, target_dictionary=target)
    model = build_model(OmegaConf.create(converted.options), task).eval()
    model.load_state_dict(converted.weights | {f"{side}.version": torch.ones(1) * 3 for side in ("encoder", "decoder")})
    sample, drafts = random_batch(1, source, [5, 1, 12, 9]), BlockDraftOptions(LoadedDrafter(copy.deepcopy(model)), 5)
    for mode, beam in (("greedy", 1), ("speculative", 1), ("aggressive-beam", 3)):
        ours = generator([model], mode, target, block_draft=drafts if mode == "speculative" else None)
        found = assert_fairseqs(ours.generate([model], sample), [model], target, sample, beam, max_len_b=20)
        assert all(target.bos() not in hypothesis["tokens"] for n_best in found for hypothesis in n_best)
    check_weights(model.half().decoder, "decoder")  # the bias of <s> is finite there, too


@pytest.mark.parametrize("name", SIDES)
def test_a_symbol_has_the_weights_of_its_token(name: str) -> None:
    (family, config, weights), table = checkpoint(name), torch.randn(40, DIM)
    found = FAMILIES[family](config, weights | {"decoder.embed_positions.weight": table}, *SIDES[name])
    encoder, decoder = ([weights[key] for key in weights if key.endswith(("shared.weight", "tokens.weight"))] * 2)[:2]
    read, written, bias = (found.weights[f"decoder.{key}"] for key in (
        "embed_tokens.weight", "output_projection.weight", "output_projection.bias"))  # fmt: skip
    for number, token in enumerate(SIDES[name][0]):
        assert torch.equal(found.weights["encoder.embed_tokens.weight"][found.symbols.index(token)], encoder[number])
    for number, token in enumerate(SIDES[name][-1]):
        row = (found.target_symbols or found.symbols).index(token)
        assert torch.equal(written[row], decoder[number])
        assert bias[row] == weights["final_logits_bias"][0, number]
        assert torch.equal(read[row], decoder[config["decoder_start_token_id"] if token == "</s>" else number])
    assert torch.equal(found.weights["decoder.embed_positions.weight"], torch.cat([torch.zeros(2, DIM), table]))
    place = 3 / 10000 ** (torch.arange(0, DIM, 2) / DIM)
    computed = found.weights["encoder.embed_positions.weight"][2 + 3]
    torch.testing.assert_close(computed, torch.cat([place.sin(), place.cos()]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pad_token_id": 5}, "pad_token_id: is 5, and 29 in the tokenizer"),
        ({"activation_function": "tanh"}, "activation_function: 'tanh' is not supported for marian"),
        ({"share_encoder_decoder_embeddings": False}, "shared.weight has 0 rows"),
    ],
)
def test_what_would_compute_something_else_is_refused_by_name(change: dict[str, Any], message: str) -> None:
    family, config, weights = checkpoint("marian")
    with pytest.raises(AggdecError, match=message):
        FAMILIES[family](config | change, weights, *SIDES["marian"])
