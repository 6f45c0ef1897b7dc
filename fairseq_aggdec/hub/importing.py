"""`aggdec import-hf`: a checkpoint in Hugging Face's format becomes a folder that fairseq reads."""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from fairseq.models.bart import BARTModel
from fairseq.models.transformer import TransformerModel

from fairseq_aggdec.compat.checkpoints import without_training
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import folder_written_whole
from fairseq_aggdec.hub import families, marian
from fairseq_aggdec.hub.families import EOS, SPECIAL, Converted
from fairseq_aggdec.hub.files import read_json, read_weights
from fairseq_aggdec.hub.generation import GENERATION, search_options
from fairseq_aggdec.hub.settings import FILE, Settings
from fairseq_aggdec.hub.tokenizers import Tokenizer, read_tokenizer

FAMILIES = families.FAMILIES | marian.FAMILIES
MODEL = "model.pt"
"""the name of the checkpoint in an imported folder"""
_CONFIG, _GENERATION, _TOKENIZER = "config.json", "generation_config.json", "tokenizer_config.json"

_LANGUAGES = {
    "mbart": r"([a-z]{2}_[A-Z]{2})",
    "m2m_100": r"__([a-z]{2,3})__|([a-z]{3}_[A-Z][a-z]{3})",
    "marian": r">>(.+)<<",
}
"""the tokens of languages in a family's vocabulary; the part in brackets is the name for `-s` and `-t`"""

_README = """\
# {name}

A {family} model, made of the files of `{name}` by `aggdec import-hf`. Its licence is that of the original model.
{languages}
    aggdec translate --model {folder} -s {source} -t {target} "A sentence."

`model.pt` is a checkpoint of fairseq, and `dict.txt` its dictionary. `hub.json` holds the form of the inputs, and the
search of the original model.
"""


def import_checkpoint(source: Path, out: Path) -> Settings:
    """Make a folder that fairseq reads of a checkpoint in Hugging Face's format. Where it fails, `out` is not made.

    Args:
        source: a folder with config.json, weights and the files of a tokenizer.
        out: the new folder.

    Raises:
        AggdecError: the checkpoint is damaged or incomplete, or of a model that fairseq does not have; `out` exists.
        OSError: a file cannot be read or written.
    """
    if out.exists():
        what = "is an imported model already: use it" if (out / FILE).is_file() else "exists"
        raise AggdecError(f"{out}: {what}, or name a new folder")
    config = read_json(source, _CONFIG)
    family = config.get("model_type")
    if family not in FAMILIES:
        raise AggdecError(
            f"{source / _CONFIG}: model_type: {family!r} is not supported, only {', '.join(FAMILIES)}"
            " (BART, mBART, M2M-100, NLLB, Marian, Pegasus)"
        )
    tokenizer = read_tokenizer(source)
    fields = read_json(source, _GENERATION, optional=True) or _old_fields(config)
    config["decoder_start_token_id"] = _start(config, fields, len(tokenizer.target_tokens))
    tokens = {id(side): side for side in (tokenizer.tokens, tokenizer.target_tokens)}  # one list, or Marian's two
    converted = FAMILIES[family](config, read_weights(source), *tokens.values())
    settings = _settings(config, fields, read_json(source, _TOKENIZER, optional=True), tokenizer)
    with folder_written_whole(out) as folder:
        sides = {"dict.txt": converted.symbols}
        if converted.target_symbols is not None:
            sides = {"dict.source.txt": converted.symbols, "dict.target.txt": converted.target_symbols}
        for name, symbols in sides.items():
            lines = [f"{symbol} 1\n" for symbol in symbols[len(SPECIAL) :]]
            (folder / name).write_text("".join(lines), encoding="utf-8")
        _check(converted, *(Dictionary.load(str(folder / name)) for name in sides))
        _save(converted, settings, folder / MODEL)
        for name in tokenizer.files:
            shutil.copyfile(source / name, folder / name)
        (folder / "README.md").write_text(_readme(source, out, settings), encoding="utf-8")
        settings.write(folder)
    return settings


def _old_fields(config: dict[str, Any]) -> dict[str, Any]:
    """The fields of generation_config.json that config.json has where that file is not there."""
    fields = {name: value for name, value in config.items() if name in GENERATION}
    if config["model_type"] != "m2m_100":  # in the others it is transformers' default
        fields.setdefault("forced_eos_token_id", config.get("eos_token_id"))
    if fields.get("force_bos_token_to_be_generated"):
        fields.setdefault("forced_bos_token_id", config.get("bos_token_id"))
    return fields


def _start(config: dict[str, Any], fields: dict[str, Any], tokens: int) -> int:
    """The number of the decoder's first input."""
    default = EOS if config["model_type"] in ("bart", "m2m_100") else None  # transformers'
    start = fields.get("decoder_start_token_id", config.get("decoder_start_token_id", default))
    if type(start) is not int or not 0 <= start < tokens:
        raise AggdecError(
            f"{_CONFIG}: decoder_start_token_id: {start} is no token's number; enter that of the output's language"
        )
    return start


def _settings(
    config: dict[str, Any], fields: dict[str, Any], options: dict[str, Any], tokenizer: Tokenizer
) -> Settings:
    """How the model is used; `options` are those of tokenizer_config.json."""
    family, tokens = config["model_type"], tokenizer.tokens
    names: dict[str, str] = {}  # of languages by their tokens
    for token in tokens:
        if match := re.fullmatch(_LANGUAGES.get(family, "(?!)"), token):
            names[token] = next(filter(None, match.groups()))
    if family in ("mbart", "m2m_100") and not names:
        raise AggdecError(
            f"{_TOKENIZER}: the vocabulary has no token of a language; download the tokenizer's files again"
        )
    start, first = (
        None if number is None else tokens[number]
        for number in (config["decoder_start_token_id"], fields.get("forced_bos_token_id"))
    )
    source = options.get("src_lang") or options.get("source_lang") or ""
    target = next((token for token in (start, first) if token in names), options.get("tgt_lang") or "")
    source, target = names.get(source, source), names.get(target, target)
    forced = [] if first is None else [first]
    if family in ("mbart", "m2m_100"):
        source, target = (name if name in names.values() else "" for name in (source, target))
        tokenizer_class = options.get("tokenizer_class") or config.get("tokenizer_class", "")
        is_mbart_25 = "MBart" in tokenizer_class and "MBart50" not in tokenizer_class
        is_last = is_mbart_25 or options.get("legacy_behaviour")
        form = "{text} </s> {source}" if is_last else "{source} {text} </s>"
        if start not in names and (first is None or first in names):
            forced = ["{target}"]
    else:
        source, target = source or "source", target or options.get("target_lang") or ("" if names else "target")
        form = {"bart": "<s> {text} </s>", "marian": "{target} {text} </s>" if names else "{text} </s>"}.get(
            family, "{text} </s>"
        )
    numbers = {name: number for name, number in config.items() if name.endswith("_token_id") and name not in GENERATION}
    languages = {name: token for token, name in names.items()}
    search = search_options(fields, numbers)
    return Settings(family, tokenizer.kind, languages, form, forced, search, source, target)


def _check(converted: Converted, source: Dictionary, target: Dictionary | None = None) -> None:
    """Raise `AggdecError` where fairseq's model has other weights, or weights of other shapes."""
    options = argparse.Namespace(**converted.options)
    ARCH_CONFIG_REGISTRY[options.arch](options)
    kind: Any = ARCH_MODEL_REGISTRY[options.arch]
    if kind is BARTModel:  # whose weights are a Transformer's, and cannot be made without memory
        kind = TransformerModel
    with torch.device("meta"):
        model = kind.build_model(options, SimpleNamespace(source_dictionary=source, target_dictionary=target or source))
    needed = {name: tuple(weight.shape) for name, weight in model.state_dict().items() if not name.endswith("version")}
    for name in sorted(needed.keys() | converted.weights.keys()):
        if name not in needed:
            raise AggdecError(f"the weights have {name}, which a model of this family has no place for: not supported")
        if name not in converted.weights:
            raise AggdecError(f"the weights lack {name}; download them again, with the config.json of this model")
        shape = tuple(converted.weights[name].shape)
        if shape != needed[name]:
            raise AggdecError(
                f"{name} has the shape {shape} in the weights, {needed[name]} by config.json; download both again"
            )


def _save(converted: Converted, settings: Settings, path: Path) -> None:
    task = {"_name": "hub_translation", "data": "."}
    task |= {"source_lang": settings.source_lang, "target_lang": settings.target_lang}
    versions = {f"{side}.version": torch.tensor([3.0]) for side in ("encoder", "decoder")}  # layer norms as since 2018
    state = {"args": None, "cfg": {"model": converted.options, "task": task}, "model": converted.weights | versions}
    torch.save(without_training(state), path)


def _readme(source: Path, out: Path, settings: Settings) -> str:
    names = ", ".join(settings.languages)
    return _README.format(
        name=source.resolve().name,
        family=settings.family,
        languages=f"Languages: {names}\n" if names else "",
        folder=out,
        source=settings.source_lang or "SOURCE",
        target=settings.target_lang or "TARGET",
    )
