"""Marian's and Pegasus's checkpoints become models of fairseq that all modes decode."""

from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.models import build_model
from omegaconf import OmegaConf

from fairseq_aggdec.engine.drafter import LoadedDrafter
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.hub.families import FAMILIES
from fairseq_aggdec.hub.importing import _dictionary
from tests.support.oracle import assert_fairseqs
from tests.support.random_models import dictionary, random_batch, random_model
from tests.support.small_generators import generator

ROWS, DIM, LAST = 30, 16, 29
CONFIG: dict[str, Any] = {"vocab_size": ROWS, "d_model": DIM, "max_position_embeddings": 40, "scale_embedding": True}
for _side in ("encoder", "decoder"):
    CONFIG |= {f"{_side}_layers": 2, f"{_side}_ffn_dim": 32, f"{_side}_attention_heads": 2}
MARIAN = {"eos_token_id": 0, "pad_token_id": LAST, "decoder_start_token_id": LAST, "activation_function": "swish"}
PEGASUS = {"eos_token_id": 1, "pad_token_id": 0, "decoder_start_token_id": 0, "activation_function": "relu"}
PIECES = [f"▁{number}" for number in range(27)]
SIDES = {
    "marian": [["</s>", "<unk>", *PIECES, "<pad>"]],
    "marian, two vocabularies": [["</s>", "<unk>", *PIECES, "<pad>"], ["</s>", "<unk>", *PIECES[::-1], "<pad>"]],
    "pegasus": [["<pad>", "</s>", *PIECES[:17], "<unk>", *PIECES[17:]]],
}


def converted(name: str, **changes: Any) -> tuple[dict[str, Any], Any]:
    """Random weights as `read_weights` names them, and what they become; `changes`: of config.json or of weights."""
    family, is_joined = name.split(",")[0], len(SIDES[name]) == 1
    config = CONFIG | {"model_type": family, "share_encoder_decoder_embeddings": is_joined}
    config |= MARIAN if family == "marian" else PEGASUS
    pre_norm = dict.fromkeys(("encoder_normalize_before", "decoder_normalize_before"), family == "pegasus")
    state = random_model(1, dictionary(ROWS), dictionary(ROWS), **pre_norm).state_dict()
    weights = {key: weight for key, weight in state.items() if "layer" in key} | {
        "final_logits_bias": torch.randn(1, ROWS)
    }
    for matrix in ("shared",) if is_joined else ("encoder.embed_tokens", "decoder.embed_tokens"):
        weights[f"{matrix}.weight"] = torch.randn(ROWS, DIM) / 2
    for key, value in changes.items():
        (config if key in {*config, "rotary"} else weights)[key] = value
    return weights, FAMILIES[family](config, weights, *SIDES[name])


@pytest.mark.parametrize("name", SIDES)
def test_every_mode_decodes_as_fairseq(name: str) -> None:
    _, made = converted(name)
    source, target = map(_dictionary, (made.symbols, made.target_symbols or made.symbols))
    sides = SimpleNamespace(source_dictionary=source, target_dictionary=target)
    model: Any = build_model(OmegaConf.create(made.options), sides).eval()
    shares = model.decoder.output_projection.weight is model.encoder.embed_tokens.weight
    assert shares == (made.target_symbols is None)
    model.load_state_dict(made.weights | {f"{side}.version": torch.ones(1) * 3 for side in ("encoder", "decoder")})
    drafts: Any = {"block_draft": BlockDraftOptions(LoadedDrafter(deepcopy(model)), 5), "drafts": "whole"}
    sample = random_batch(1, source, [5, 1, 12, 9])
    for mode, beam, options in (("greedy", 1, {}), ("speculative", 1, drafts), ("aggressive-beam", 3, {})):
        ours = generator([model], mode, target, **options)
        found = assert_fairseqs(ours.generate([model], sample), [model], target, sample, beam, max_len_b=20)
        assert all(target.bos() not in hypothesis["tokens"] for n_best in found for hypothesis in n_best)
    assert model.half().decoder.output_projection.bias.isfinite().all()  # <s> has a number there, too


@pytest.mark.parametrize("name", SIDES)
def test_each_symbol_has_the_weights_of_its_token(name: str) -> None:
    table = torch.randn(40, DIM)
    weights, made = converted(name, **{"decoder.embed_positions.weight": table})
    read, first = made.weights["decoder.embed_tokens.weight"], 0 if name == "pegasus" else LAST
    *_, encoder, decoder = [weights[key] for key in weights if key.endswith(("shared.weight", "tokens.weight"))] * 2
    for number, (token, other) in enumerate(zip(SIDES[name][0], SIDES[name][-1], strict=True)):
        here, there = made.symbols.index(token), (made.target_symbols or made.symbols).index(other)
        assert torch.equal(made.weights["encoder.embed_tokens.weight"][here], encoder[number])
        assert torch.equal(made.weights["decoder.output_projection.weight"][there], decoder[number])
        assert made.weights["decoder.output_projection.bias"][there] == weights["final_logits_bias"][0, number]
        assert torch.equal(read[there], decoder[first if other == "</s>" else number])
    assert torch.equal(made.weights["decoder.embed_positions.weight"][2:], table)
    angles, computed = 3 / 10000 ** (torch.arange(0, DIM, 2) / DIM), made.weights["encoder.embed_positions.weight"]
    torch.testing.assert_close(computed[2 + 3], torch.cat([angles.sin(), angles.cos()]))


@pytest.mark.parametrize(("field", "value"), [("pad_token_id", 5), ("activation_function", "tanh"), ("rotary", True)])
def test_what_would_compute_something_else_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(AggdecError, match=f"{field}: "):
        converted("marian", **{field: value})
