"""Folders in Hugging Face's format become folders that fairseq reads, or are refused in one line."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.models import build_model
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models
from torch import Tensor

from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.hub.importing import import_checkpoint
from fairseq_aggdec.hub.settings import Settings
from tests.support.random_models import dictionary, random_network

TOKENS = dictionary(12)
SIZES = {"layers": 2, "attention_heads": 2, "ffn_dim": 32}
CONFIG = {
    **{"model_type": "bart", "activation_function": "gelu", "scale_embedding": False, "normalize_before": False},
    **{f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in SIZES.items()},
    **{"d_model": 16, "max_position_embeddings": 64, "vocab_size": 16, "bos_token_id": 0, "pad_token_id": 1},
    **{"eos_token_id": 2, "forced_bos_token_id": 0, "num_beams": 4, "max_length": 9, "no_repeat_ngram_size": 3},
    "use_return_dict": True,
}
"""as in older files, which hold the search, and lack what is transformers' default"""
WEIGHTS = "model.safetensors"


def write(path: Path, **fields: Any) -> None:
    content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps(content | fields), encoding="utf-8")


def store(weights: dict[str, Tensor], path: Path) -> None:
    """Weights in a file; in two, if the path is that of an index."""
    save: Any = save_file if WEIGHTS in path.name else torch.save
    if path.suffix != ".json":
        return save(weights, path)
    places = {
        name: f"{number % 2}-{path.with_suffix('').stem}{path.suffixes[0]}" for number, name in enumerate(weights)
    }
    for file in {*places.values()}:
        save({name: weights[name] for name in places if places[name] == file}, path.with_name(file))
    return write(path, weight_map=places)


def write_bart(folder: Path, file: str = WEIGHTS) -> dict[str, Tensor]:
    """A folder of a random model, and its weights by fairseq's names."""
    folder.mkdir()
    write(folder / "config.json", **CONFIG)
    tokenizer = Tokenizer(models.WordLevel(TOKENS.indices, "<unk>"))
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.save(f"{folder}/tokenizer.json")
    state = random_network("bart_base", 1, TOKENS, TOKENS).half().state_dict()
    weights = {name: weight.clone() for name, weight in state.items() if "version" not in name}
    there = {f"model.{name}": weight for name, weight in weights.items()}
    store(there | {"final_logits_bias": torch.zeros(1, 16), "encoder.version": torch.ones(1)}, folder / file)
    return weights


@pytest.mark.parametrize(
    "file", [WEIGHTS, f"{WEIGHTS}.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"]
)
def test_fairseq_reads_the_weights_in_their_own_precision(tmp_path: Path, file: str) -> None:
    out = tmp_path / "out"
    (tmp_path / "out.partial/killed").mkdir(parents=True)
    weights = write_bart(tmp_path / "bart", file)
    settings = import_checkpoint(tmp_path / "bart", out)
    assert settings == Settings.read(out)
    assert (settings.source, settings.forced, settings.languages) == ("<s> {text} </s>", ["<s>"], {})
    search = {"beam": 4, "lenpen": 1.0, "max_len_a": 0, "max_len_b": 7, "min_len": 0}
    assert settings.generation == {**search, "no_repeat_ngram_size": 3, "block_ngrams": True}
    task = SimpleNamespace(source_dictionary=TOKENS, target_dictionary=TOKENS)
    task.build_model = lambda cfg: build_model(cfg, task)
    [model], _ = checkpoint_utils.load_model_ensemble([f"{out}/model.pt"], task=task)
    stored = read_checkpoint(out / "model.pt")["model"]
    for name, weight in weights.items():
        assert torch.equal(stored[name], weight)
        assert torch.equal(model.state_dict()[name], weight.float())
    assert {path.name for path in tmp_path.iterdir()} == {"bart", "out"}
    with pytest.raises(AggdecError, match="out: is an imported model already: use it, or name a new folder"):
        import_checkpoint(tmp_path / "bart", out)
    with pytest.raises(AggdecError, match="out: is an imported model already; use it by --model"):
        import_checkpoint(out, tmp_path / "other")


@pytest.mark.parametrize(
    ("file", "fields", "message"),
    [
        ("config.json", {"model_type": "t5"}, r"config.json: model_type: 't5' is not supported; BART, mBART, "),
        ("config.json", {"rope": 1}, r"config.json: rope: is not known"),
        ("config.json", {"normalize_before": True}, r"normalize_before: True is not supported for bart, only False"),
        ("config.json", {"vocab_size": 15}, r"vocabulary that does not fit: the tokenizer has 16 tokens, .* 15 "),
        ("config.json", {"vocab_size": "16"}, r"config.json: vocab_size: is missing, or no number above 0"),
        ("config.json", {"encoder_layers": 3}, r"do not fit config.json: Missing key.*encoder.layers.2.*; download"),
        ("config.json", {"encoder_layers": 1}, r"do not fit config.json: Unexpected key.*encoder.layers.1.fc1.bias"),
        ("config.json", {"decoder_ffn_dim": 8}, r"do not fit config.json: .*decoder.layers.1.fc2.weight.*\[16, 32\]"),
        ("generation_config.json", {"repetition_penalty": 1.2}, r"repetition_penalty: 1.2 is not supported"),
        ("generation_config.json", {"num_beams": 1.5}, r"num_beams: 1.5 is no such number"),
        ("config.json", None, r"bart/config.json: no such file; name the folder"),
        (WEIGHTS, None, r"bart/model.safetensors: is damaged, or .*; download it again"),
    ],
)
def test_what_cannot_be_imported_is_refused_in_one_line_and_leaves_nothing(
    tmp_path: Path, file: str, fields: dict[str, Any] | None, message: str
) -> None:
    path = tmp_path / "bart" / file
    write_bart(path.parent)
    if fields is not None:
        write(path, **fields)
    elif file == WEIGHTS:
        path.write_bytes(path.read_bytes()[:1000])
    else:
        path.unlink()
    with pytest.raises(AggdecError, match=message) as error:
        import_checkpoint(tmp_path / "bart", tmp_path / "out")
    assert "\n" not in str(error.value)
    assert [entry.name for entry in tmp_path.iterdir()] == ["bart"]
