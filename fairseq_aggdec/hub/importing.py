"""A checkpoint in Hugging Face's format becomes a folder that fairseq reads, once, in the user's cache or elsewhere."""

import argparse
import fcntl
import hashlib
import os
import re
import shlex
import shutil
import textwrap
import warnings
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from fairseq.models.bart import BARTModel
from fairseq.models.transformer import TransformerModel
from torch import Tensor

from fairseq_aggdec import register
from fairseq_aggdec.compat.checkpoints import without_training
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import folder_written_whole
from fairseq_aggdec.generation.modes import AGGRESSIVE_BEAM, BEAM, GREEDY, IAD
from fairseq_aggdec.hub.families import EOS, FAMILIES
from fairseq_aggdec.hub.files import read_json, read_weights
from fairseq_aggdec.hub.generation import GENERATION, flags, search_options
from fairseq_aggdec.hub.settings import FILE, MODEL, Settings
from fairseq_aggdec.hub.tokenizers import Tokenizer, read_tokenizer

# a program that imports this module before fairseq has all tasks and models, too
register()
_LANGUAGES = {
    "mbart": "[a-z]{2}_[A-Z]{2}",
    "m2m_100": "__[a-z]{2,3}__|[a-z]{3}_[A-Z][a-z]{3}",
    "marian": ">>.+<<",
}
"""the tokens of a family's languages; their names have no `__` or `>>` around them"""
_README = """\
# {0}

A model of the family `{1.family}`, made of the files of `{0}` by `aggdec import-hf`. Its licence is the original's.

{2}

`model.pt` is a checkpoint of fairseq, `dict.txt` its dictionary. `hub.json` holds the languages, the form of the
inputs and the original model's search.
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
    config = read_json(source, "config.json")
    family = str(config.get("model_type"))
    if family not in FAMILIES:
        known = (
            "BART, mBART, M2M-100, NLLB, Marian (OPUS-MT) and Pegasus can be imported"
        )
        raise AggdecError(
            f"{source / 'config.json'}: model_type: {family!r} is not supported; {known}"
        )
    tokenizer = read_tokenizer(source)
    settings = _settings(source, config, tokenizer)
    target = (
        None if tokenizer.target_tokens == tokenizer.tokens else tokenizer.target_tokens
    )
    converted = FAMILIES[family](config, read_weights(source), tokenizer.tokens, target)
    sides = {"dict.txt": converted.symbols}
    if converted.target_symbols is not None:
        sides = {
            "dict.source.txt": converted.symbols,
            "dict.target.txt": converted.target_symbols,
        }
    dictionaries = {name: _dictionary(symbols) for name, symbols in sides.items()}
    options = argparse.Namespace(**converted.options)
    # with fairseq's defaults, which what builds on it reads
    ARCH_CONFIG_REGISTRY[options.arch](options)
    # else fairseq drops norms
    versions = {
        f"{side}.version": torch.tensor([3.0]) for side in ("encoder", "decoder")
    }
    weights = converted.weights | versions
    _check(weights, options, [*dictionaries.values()])
    languages = {
        "source_lang": settings.source_lang,
        "target_lang": settings.target_lang,
    }
    cfg = {
        "model": options,
        "task": {"_name": "hub_translation", "data": ".", **languages},
    }
    with folder_written_whole(out) as folder:
        torch.save(
            without_training({"args": None, "cfg": cfg, "model": weights}),
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


def _settings(source: Path, config: dict[str, Any], tokenizer: Tokenizer) -> Settings:
    """How the model is used. `decoder_start_token_id` of its configuration gets the value that is in force."""
    family, tokens = config["model_type"], tokenizer.tokens
    fields = read_json(source, "generation_config.json", optional=True)
    if not fields:  # older files have them in config.json
        fields = {name: value for name, value in config.items() if name in GENERATION}
        if fields.get("force_bos_token_to_be_generated"):
            fields.setdefault("forced_bos_token_id", config.get("bos_token_id"))
        if family != "m2m_100":  # in the others it is transformers' default
            fields.setdefault("forced_eos_token_id", config.get("eos_token_id"))
    default = EOS if family in ("bart", "m2m_100") else None  # transformers'
    start: Any = fields.get(
        "decoder_start_token_id", config.get("decoder_start_token_id", default)
    )
    config["decoder_start_token_id"] = start
    begin = {"decoder_start_token_id": start} | {
        name: fields[name] for name in fields if name == "forced_bos_token_id"
    }
    for name, number in begin.items():
        if type(number) is not int or not 0 <= number < len(tokenizer.target_tokens):
            raise AggdecError(
                f"{source}: {name}: {number} is no token's number; enter that of the output's language"
            )
    first, *forced = (tokenizer.target_tokens[number] for number in begin.values())

    options = read_json(source, "tokenizer_config.json", optional=True)
    names = {
        token: token.strip("_<>")
        for token in tokens
        if re.fullmatch(_LANGUAGES.get(family, "(?!)"), token)
    }
    known = names | {name: name for name in names.values()}
    src = options.get("src_lang") or options.get("source_lang", "")
    tgt = options.get("tgt_lang") or options.get("target_lang", "")
    target = next(
        (known[token] for token in (first, *forced, tgt) if token in known),
        "" if names else tgt or "target",
    )
    form = {"bart": "<s> {text} </s>"}.get(
        family, "{target} {text} </s>" if names else "{text} </s>"
    )
    if family in ("mbart", "m2m_100"):
        if not names:
            raise AggdecError(
                f"{source}: the tokenizer has no language; download the files of the tokenizer again"
            )
        kind = options.get("tokenizer_class") or config.get("tokenizer_class") or ""
        is_mbart_25 = "50" not in kind and ("MBart" in kind or first in names)
        form = (
            "{text} </s> {source}"
            if is_mbart_25 or options.get("legacy_behaviour")
            else "{source} {text} </s>"
        )
        if first not in names and names.keys() >= {*forced}:
            forced = ["{target}"]
        src = known.get(src, "")
    else:
        src = src or "source"
    numbers = {
        name: value
        for name, value in config.items()
        if name.endswith("_token_id") and name not in GENERATION
    }
    languages = {name: token for token, name in names.items()}
    summarizes = family == "pegasus" or any(
        "summarization" in task for task in config.get("task_specific_params", {})
    )
    search = search_options(fields, numbers)
    return Settings(
        family, tokenizer.kind, languages, form, forced, search, src, target, summarizes
    )


def _dictionary(symbols: list[str]) -> Dictionary:
    dictionary = Dictionary()
    for symbol in symbols[dictionary.nspecial :]:
        dictionary.add_symbol(symbol)
    return dictionary


def _check(
    weights: dict[str, Tensor],
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
    try:
        cache.mkdir(parents=True, exist_ok=True)
        opened = (cache / f"{found.name}.lock").open("w")
    except OSError as error:
        reason = error.strerror
        raise AggdecError(
            f"{cache}: cannot be written ({reason}); set XDG_CACHE_HOME to another folder"
        ) from None
    with opened as lock:
        with suppress(OSError):  # a network file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not (found / FILE).is_file():
            import_checkpoint(folder, found)
    return found


def commands(folder: Path, settings: Settings) -> str:
    """Lines for a shell; `text.txt`, `train.txt` and `valid.txt` are the user's, with a sentence a line."""
    name, model = shlex.quote(str(folder)), shlex.quote(str(folder / MODEL))
    # the first other language, or the only one
    source = settings.source_lang or min(
        settings.languages, key=settings.target_lang.__eq__
    )
    target = settings.target_lang or min(settings.languages, key=source.__eq__)
    pair = f"-s {source} -t {target}"
    search = dict(settings.generation)
    beam = search.pop("beam", 1)
    words = "".join(f" {word}" for word in flags(search))
    modes = [f"{AGGRESSIVE_BEAM}:{beam}", GREEDY, IAD]
    if "block_ngrams" not in search:  # fairseq's own search bans none
        modes.insert(0, f"{BEAM}{beam}")
    text = (
        '--whole "A text. It is one input."' if settings.summarizes else '"A sentence."'
    )
    example = (
        f"  # of the {len(settings.languages)} languages in hub.json"
        if settings.languages
        else ""
    )
    return "\n".join(
        (
            f"aggdec translate --model {name} {pair} {text}{example}",
            f"aggdec binarize {name} data-bin {pair} --test text.txt --train train.txt --valid valid.txt",
            f'fairseq-generate data-bin --user-dir "$(aggdec user-dir)" --task aggressive_hub_translation '
            f"--path {model} {pair} --bpe hub --hub-folder {name} --decoding {AGGRESSIVE_BEAM} --beam {beam}{words}",
            f"aggdec bench data-bin --path {model} {pair} --modes {','.join(modes)}{words}",
            f"aggdec drafter --verifier {model} --data data-bin {pair} --out drafter",
        )
    )
