"""Folders in Hugging Face's format become folders that fairseq reads, or are refused in one line."""

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.hub.importing import import_checkpoint
from fairseq_aggdec.hub.settings import Settings
from tests.hub.imported_models import MODELS, copied
from tests.support.helpers import refused_with

CONFIG = "config.json"
GENERATION = "generation_config.json"
TOKENIZER = "tokenizer_config.json"
SAFE = "model.safetensors"
BIN = "pytorch_model.bin"
PUBLISHED = json.loads(MODELS.with_name("published_t5.json").read_text("utf-8"))
"""a small model with the flags of each, and its config.json"""
SIZES = "d_ff d_kv d_model num_decoder_layers num_heads num_layers vocab_size".split()


class Code:
    """Unpickling it makes a folder."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("made",)


def test_weights_keep_their_precision_and_older_files_have_the_search_in_config_json(
    tmp_path: Path,
) -> None:
    older = {
        "num_beams": 4,
        "max_length": 9,
        "no_repeat_ngram_size": 3,
        "force_bos_token_to_be_generated": True,
    }
    harmless = {
        "replacing_rate": 0,
        "use_return_dict": True,
        "forced_eos_token_id": None,
    }
    folder = copied(
        "bart", tmp_path / "bart", {GENERATION: None, CONFIG: older | harmless}
    )
    out = tmp_path / "out"
    (tmp_path / "out.partial/killed").mkdir(parents=True)
    settings = import_checkpoint(folder, out)
    assert settings == Settings.read(out)
    assert (settings.source, settings.forced, settings.languages) == (
        "<s> {text} </s>",
        ["<s>"],
        {},
    )
    search = {"beam": 4, "lenpen": 1.0, "max_len_a": 0, "max_len_b": 7, "min_len": 0}
    assert settings.generation == search | {
        "no_repeat_ngram_size": 3,
        "block_ngrams": True,
    }
    ours = read_checkpoint(out / "model.pt")["model"]
    for name, weight in load_file(folder / SAFE).items():
        if ".layers." in name:
            torch.testing.assert_close(
                ours[name.removeprefix("model.")], weight, rtol=0, atol=0
            )
    assert {path.name for path in tmp_path.iterdir()} == {"bart", "out"}
    with refused_with(
        "out: is an imported model already: use it, or name a new folder"
    ):
        import_checkpoint(folder, out)
    with refused_with("out: is an imported model already; use it by --model"):
        import_checkpoint(out, tmp_path / "other")


def test_marians_own_table_of_positions_is_read_and_its_bias_is_finite_in_half_precision(
    tmp_path: Path,
) -> None:
    path = copied("marian", tmp_path / "marian", {}) / BIN
    name = "decoder.embed_positions.weight"
    weights = torch.load(path)
    weights[f"model.{name}"] = table = weights[f"model.{name}"].flip(0)
    torch.save(weights, path)
    import_checkpoint(path.parent, tmp_path / "out")
    ours = read_checkpoint(tmp_path / "out/model.pt")["model"]
    assert torch.equal(ours[name][2:], table)
    # <s> has a number there, too
    assert ours["decoder.output_projection.bias"].half().isfinite().all()


def test_an_adapter_and_a_prompt_that_a_model_does_not_read_are_refused(
    tmp_path: Path,
) -> None:
    folder = copied("flan_t5", tmp_path / "lora", {})
    (folder / "adapter_config.json").write_text("{}")
    (folder / CONFIG).unlink()
    with refused_with("lora: holds an adapter .*: merge it into"):
        import_checkpoint(folder, tmp_path / "out")
    bart = copied("bart", tmp_path / "bart", {})
    with refused_with("--prompt: is for T5 and mT5, and not for bart"):
        import_checkpoint(bart, tmp_path / "out", "Fix typos: ")


@pytest.mark.parametrize("published", [*PUBLISHED][1:])
def test_published_configurations_of_t5_are_imported(
    published: str, tmp_path: Path
) -> None:
    """As written down from memory, in the sizes of small models with the same flags and files."""
    name, fields = PUBLISHED[published]
    small = json.loads((MODELS / name / CONFIG).read_text("utf-8"))
    _, of_all = PUBLISHED["every one"]
    changes = of_all | fields | {size: small.get(size) for size in SIZES}
    settings = import_checkpoint(
        copied(name, tmp_path / name, {CONFIG: changes}), tmp_path / "out"
    )
    assert (settings.generation["beam"], settings.generation["max_len_b"]) == (1, 512)
    assert settings.summarizes == ("summarization" in str(fields))


@pytest.mark.parametrize(
    "name, changes, message",
    [
        (
            "bart",
            {CONFIG: {"model_type": "umt5"}},
            r"config.json: model_type: 'umt5' is not supported; BART, mBART, ",
        ),
        ("bart", {CONFIG: {"rope": 1}}, r"config.json: rope: is not known"),
        (
            "bart",
            {CONFIG: {"normalize_before": True}},
            r"normalize_before: True is not supported for bart, only False",
        ),
        (
            "bart",
            {CONFIG: {"vocab_size": 900}},
            r"that does not fit: the tokenizer has 1001 tokens, .* 900 ",
        ),
        (
            "bart",
            {CONFIG: {"vocab_size": "16"}},
            r"config.json: vocab_size: is missing, or no number above 0",
        ),
        (
            "bart",
            {CONFIG: {"encoder_layers": 3}},
            r"do not fit config.json: Missing key.*encoder.layers.2.*; download",
        ),
        (
            "bart",
            {CONFIG: {"encoder_layers": 1}},
            r"do not fit config.json: Unexpected key.*encoder.layers.1.fc1.bias",
        ),
        (
            "bart",
            {CONFIG: {"decoder_ffn_dim": 8}},
            r"do not fit config.json: .*decoder.layers.1.fc2.weight.*",
        ),
        (
            "bart",
            {GENERATION: {"repetition_penalty": 1.2}},
            r"repetition_penalty: 1.2 is not supported",
        ),
        ("bart", {GENERATION: {"num_beams": 1.5}}, r"num_beams: 1.5 is no such number"),
        ("bart", {CONFIG: None}, r"bart/config.json: no such file; name the folder"),
        (
            "bart",
            {SAFE: 1000},
            r"bart/model.safetensors: is damaged, or .*; download it again",
        ),
        (
            "mbart25",
            {BIN: Code()},
            r"pytorch_model.bin: .* holds more than weights, of which no code was run",
        ),
        (
            "marian",
            {CONFIG: {"pad_token_id": 5}, GENERATION: None},
            r"pad_token_id: is 5, and 1078 in the tokenizer",
        ),
        (
            "marian",
            {CONFIG: {"activation_function": "tanh"}},
            r"activation_function: 'tanh' is not supported for mar",
        ),
        ("marian", {CONFIG: {"rotary": True}}, r"config.json: rotary: is not known"),
        (
            "t5",
            {CONFIG: {"feed_forward_proj": "gated-silu", "rope": 1}},
            r"feed_forward_proj: 'gated-silu' is not supported, .*; rope: is not known",
        ),
        (
            "t5",
            {CONFIG: {"architectures": ["T5EncoderModel"], "d_kv": "16"}},
            r"architectures: .*T5EncoderModel.* is not supported, .*; d_kv: is missing, or no number",
        ),
        (
            "flan_t5",
            {CONFIG: {"tie_word_embeddings": True}},
            r"lm_head differs from shared, and config.json says that they are one",
        ),
        (
            "t5",
            {CONFIG: {"quantization_config": {"bits": 4}}},
            r"t5: is quantised \(quantization_config\); import the original",
        ),
        (
            "t5",
            {BIN: torch.zeros(2, dtype=torch.int8)},
            r"t5: is quantised \(weight: torch.int8\); import the original",
        ),
        ("mt5", {BIN: torch.tensor(math.nan)}, r"mt5: weight: holds NaN; download"),
        (
            "flan_t5",
            {CONFIG: {"relative_attention_max_distance": 16}},
            r"relative_attention_max_distance: 16 is not above half of .*_num_buckets \(32,",
        ),
        (
            "mt5",
            {TOKENIZER: {"extra_ids": "1"}},
            r"tokenizer_config.json: extra_ids: '1' is no number",
        ),
        (
            "byt5",
            {TOKENIZER: {"extra_ids": -1}},
            r"tokenizer_config.json: extra_ids: -1 is no number",
        ),
        ("byt5", {TOKENIZER: {"tokenizer_class": 5}}, r"no tokenizer with its files"),
        (
            "mt5",
            {CONFIG: {"num_decoder_layers": 3}},
            r"do not fit config.json: Missing key.*decoder.layers.2.*; download",
        ),
    ],
)
def test_what_cannot_be_imported_is_refused_in_one_line_and_leaves_nothing(
    name: str,
    changes: dict[str, Any],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with refused_with(message) as error:
        import_checkpoint(copied(name, tmp_path / name, changes), tmp_path / "out")
    assert "\n" not in str(error.value)
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
