"""A checkpoint in Hugging Face's format becomes a folder that fairseq reads, once, in the user's cache or elsewhere."""

import argparse
import hashlib
import os
import re
import shlex
import shutil
import textwrap
import warnings
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from fairseq.models.bart import BARTModel
from fairseq.models.transformer import TransformerModel

from fairseq_aggdec import register
from fairseq_aggdec.compat.checkpoints import without_training
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import folder_written_whole, locked
from fairseq_aggdec.generation.modes import AGGRESSIVE_BEAM, BEAM, GREEDY, IAD
from fairseq_aggdec.hub import t5
from fairseq_aggdec.hub.families import EOS, FAMILIES, Family, convert
from fairseq_aggdec.hub.files import Fields, Weights, read_json, read_weights
from fairseq_aggdec.hub.generation import GENERATION, flags, search_options
from fairseq_aggdec.hub.settings import (
    FILE,
    MODEL,
    T5,
    T5_LENGTH,
    Settings,
    check_prompted,
)
from fairseq_aggdec.hub.tokenizers import Tokenizer, read_tokenizer

# a program that imports this module before fairseq has all tasks and models, too
register()
_README = """\
# {0}

A model of the family `{1.family}`, made of the files of `{0}` by `aggdec import-hf`. Its licence is the original's.

{2}

`model.pt` is a checkpoint of fairseq, `dict.txt` its dictionary. `hub.json` holds the languages, the form of the
inputs and the original model's search.
"""


def import_checkpoint(source: Path, out: Path, prompt: str = "") -> Settings:
    """Make a folder that fairseq reads of a checkpoint in Hugging Face's format. Where it fails, `out` is not made.

    Args:
        source: a folder with config.json, weights and the files of a tokenizer.
        out: the new folder.
        prompt: what a T5 reads before each text, such as "Fix grammar: ".

    Raises:
        AggdecError: the checkpoint is damaged or incomplete, or of a model that fairseq does not have; it reads no
            prompt; `out` exists.
        OSError: a file cannot be read or written.
    """
    if out.exists():
        what = (
            "is an imported model already: use it"
            if (out / FILE).is_file()
            else "exists already: delete it"
        )
        raise AggdecError(f"{out}: {what}, or name a new folder")
    if (source / FILE).is_file():
        raise AggdecError(
            f"{source}: is an imported model already; use it by --model, or load.hub"
        )
    if (source / "adapter_config.json").is_file():
        raise AggdecError(
            f"{source}: holds an adapter (LoRA), which is not applied: merge it into its model's weights first, and "
            "delete adapter_config.json"
        )
    config = read_json(source, "config.json")
    if "quantization_config" in config:
        raise AggdecError(
            f"{source}: is quantised (quantization_config); import the original checkpoint"
        )
    family = str(config.get("model_type"))
    if family not in FAMILIES:
        known = "BART, mBART, M2M-100, NLLB, Marian (OPUS-MT), Pegasus, T5 and mT5 can be imported"
        raise AggdecError(
            f"{source / 'config.json'}: model_type: {family!r} is not supported; {known}"
        )
    if prompt:
        check_prompted(family)
    # read all that is there, and convert it
    tokenizer = read_tokenizer(source)
    settings, start = _usage(source, config, tokenizer, prompt)
    weights = read_weights(source)
    sides = tokenizer.tokens, tokenizer.target_tokens
    if family in T5:
        converted = t5.convert(config, start, weights, tokenizer.tokens)
    else:
        converted = convert(FAMILIES[family], config, start, weights, *sides)
    dictionaries = {
        name: _dictionary(symbols) for name, symbols in converted.symbols.items()
    }
    # a model of fairseq must take it
    options = argparse.Namespace(**converted.options)
    # with fairseq's defaults, which what builds on it reads
    ARCH_CONFIG_REGISTRY[options.arch](options)
    _check(converted.weights, options, [*dictionaries.values()])
    languages = {
        "source_lang": settings.source_lang,
        "target_lang": settings.target_lang,
    }
    cfg = {
        "model": options,
        "task": {"_name": "hub_translation", "data": ".", **languages},
    }
    # write it
    with folder_written_whole(out) as folder:
        torch.save(
            without_training({"args": None, "cfg": cfg, "model": converted.weights}),
            folder / MODEL,
        )
        for name, dictionary in dictionaries.items():
            dictionary.save(str(folder / name))
        for name in tokenizer.files:
            shutil.copyfile(source / name, folder / name)
        lines = textwrap.indent(commands(out, settings), "    ")
        (folder / "README.md").write_text(
            _README.format(source.resolve().name, settings, lines), "utf-8"
        )
        settings.write(folder)
    return settings


def _usage(
    source: Path, config: Fields, tokenizer: Tokenizer, prompt: str
) -> tuple[Settings, int]:
    """How the model is used, and the first input of its decoder, by the tokenizer's index."""
    name = config["model_type"]
    family = FAMILIES[name]
    generation = _generation(source, config, family)
    tokens = tokenizer.target_tokens
    # the first tokens of an output
    start: Any = EOS if family.starts_with_eos else None
    start = config.get("decoder_start_token_id", start)
    start = generation.get("decoder_start_token_id", start)
    begin: Fields = {"decoder_start_token_id": start}
    if "forced_bos_token_id" in generation:
        begin["forced_bos_token_id"] = generation["forced_bos_token_id"]
    for field, index in begin.items():
        if type(index) is not int or not 0 <= index < len(tokens):
            raise AggdecError(
                f"{source}: {field}: {index} is no token's index; enter that of the output's language"
            )
    first, *forced = (tokens[index] for index in begin.values())
    # its languages, by their tokens and by their names
    languages = {
        token.strip("_<>"): token
        for token in tokenizer.tokens
        if re.fullmatch(family.language, token)
    }
    names = {token: language for language, token in languages.items()}
    names |= {language: language for language in languages}
    options = read_json(source, "tokenizer_config.json", optional=True)
    source_lang = options.get("src_lang") or options.get("source_lang", "")
    target_lang = options.get("tgt_lang") or options.get("target_lang", "")
    default = "" if languages else target_lang or "target"
    named = (names[token] for token in (first, *forced, target_lang) if token in names)
    target_lang = next(named, default)
    # how a source is written
    if family.names_source:
        if not languages:
            raise AggdecError(
                f"{source}: the tokenizer has no language; download the files of the tokenizer again"
            )
        kind = str(options.get("tokenizer_class") or config.get("tokenizer_class"))
        is_language = first in languages.values()
        is_mbart_25 = "50" not in kind and ("MBart" in kind or is_language)
        ends = is_mbart_25 or options.get("legacy_behaviour")
        template = "{text} </s> {source}" if ends else "{source} {text} </s>"
        if not is_language and set(forced) <= set(languages.values()):
            forced = ["{target}"]
        source_lang = names.get(source_lang, "")
    else:
        source_lang = source_lang or "source"
        template = "<s> {text} </s>" if family.is_bart else "{text} </s>"
        if languages:
            template = "{target} {text} </s>"
    template = " ".join([*tokenizer.prompt(prompt), template])
    tasks = config.get("task_specific_params", {})
    settings = Settings(
        name,
        tokenizer.kind,
        languages,
        template,
        forced,
        search_options(generation, config),
        source_lang,
        target_lang,
        summarizes=name == "pegasus" or any("summarization" in task for task in tasks),
    )
    return settings, start


def _generation(source: Path, config: Fields, family: Family) -> Fields:
    """The fields of generation_config.json, which older files have in config.json."""
    fields = read_json(source, "generation_config.json", optional=True)
    if not fields:
        fields = {name: value for name, value in config.items() if name in GENERATION}
        if fields.get("force_bos_token_to_be_generated"):
            fields.setdefault("forced_bos_token_id", config.get("bos_token_id"))
        if family.forces_eos:
            fields.setdefault("forced_eos_token_id", config.get("eos_token_id"))
    # most T5 name no length, and transformers' 20 tokens would end texts in the middle
    if config["model_type"] in T5 and "max_length" not in fields:
        fields.setdefault("max_new_tokens", T5_LENGTH)
    return fields


def _dictionary(symbols: list[str]) -> Dictionary:
    dictionary = Dictionary()
    for name in symbols[dictionary.nspecial :]:
        dictionary.add_symbol(name)
    return dictionary


def _check(
    weights: Weights,
    options: argparse.Namespace,
    dictionaries: list[Dictionary],
) -> None:
    """Raise `AggdecError` where fairseq's model has other weights, or weights of other shapes."""
    kind: Any = ARCH_MODEL_REGISTRY[options.arch]
    # its weights are a Transformer's, and it cannot be made without memory
    if kind is BARTModel:
        kind = TransformerModel
    task = SimpleNamespace(
        source_dictionary=dictionaries[0], target_dictionary=dictionaries[-1]
    )
    try:
        # which says that it keeps no weights
        with torch.device("meta"), warnings.catch_warnings(action="ignore"):
            kind.build_model(options, task).load_state_dict(dict(weights))
    except (AssertionError, RuntimeError) as error:
        # heads that do not divide the width; weights
        reason = textwrap.shorten(str(error).splitlines()[-1], 200).rstrip(".")
        raise AggdecError(
            f"the weights do not fit config.json: {reason}; download both again"
        ) from None


def imported(folder: Path) -> Path:
    """An imported folder as it is, or the import of a downloaded one, made unless one of the same files is there.

    Another process that wants it waits. Raises `AggdecError` where there is nothing that can be imported, or the cache
    cannot be written.
    """
    if not folder.is_dir():
        raise AggdecError(
            f"{folder}: no such folder; name one with config.json, weights and tokenizer"
        )
    if (folder / FILE).is_file():
        return folder
    # which files it is made of
    folder = folder.resolve()
    facts = [str(folder), version("fairseq-aggdec")]
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        facts += [path.name, str(path.stat().st_size), str(path.stat().st_mtime_ns)]
    key = hashlib.sha256("\0".join(facts).encode()).hexdigest()[:16]
    cache = (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        / "fairseq_aggdec"
        / "hub"
    )
    found = cache / f"{folder.name}-{key}"
    lock = cache / f"{found.name}.lock"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock.touch()
    except OSError as error:
        raise AggdecError(
            f"{cache}: cannot be written ({error.strerror}); set XDG_CACHE_HOME to another folder"
        ) from None
    with locked(lock):
        if not (found / FILE).is_file():
            import_checkpoint(folder, found)
    return found


def commands(folder: Path, settings: Settings) -> str:
    """Lines for a shell; `text.txt`, `train.txt` and `valid.txt` are the user's, with a sentence a line."""
    name = shlex.quote(str(folder))
    model = shlex.quote(str(folder / MODEL))
    # the first other language, or the only one
    source = settings.source_lang or min(
        settings.languages, key=settings.target_lang.__eq__
    )
    target = settings.target_lang or min(settings.languages, key=source.__eq__)
    pair = f"-s {source} -t {target}"
    # its search
    search = dict(settings.generation)
    beam = search.pop("beam", 1)
    if settings.family in T5:  # fairseq refuses sources of more than 1,024 tokens
        search["max_source_positions"] = t5.LONGEST
    words = "".join(f" {word}" for word in flags(search))
    modes = [f"{AGGRESSIVE_BEAM}:{beam}", GREEDY, IAD]
    if "block_ngrams" not in search:  # fairseq's search bans none
        modes.insert(0, f"{BEAM}{beam}")
    text = (
        '--whole "A text. It is one input."' if settings.summarizes else '"A sentence."'
    )
    example = (
        f"  # of the {len(settings.languages)} languages in hub.json"
        if settings.languages
        else ""
    )
    lines = [
        f"aggdec translate --model {name} {pair} {text}{example}",
        f"aggdec binarize {name} data-bin {pair} --test text.txt --train train.txt --valid valid.txt",
        f'fairseq-generate data-bin --user-dir "$(aggdec user-dir)" --task aggressive_hub_translation '
        f"--path {model} {pair} --bpe hub --hub-folder {name} --decoding {AGGRESSIVE_BEAM} --beam {beam}{words}",
        f"aggdec bench data-bin --path {model} {pair} --modes {','.join(modes)}{words}",
        f"aggdec drafter --verifier {model} --data data-bin {pair} --out drafter",
    ]
    return "\n".join(lines)
