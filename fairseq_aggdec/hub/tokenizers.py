"""Tokenizers of Hugging Face's checkpoints: the numbers that a published one gives a text, and the text of numbers.

The libraries `tokenizers` and `sentencepiece` (the extra `hub`) are imported when a folder is read.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from fairseq.data.encoders import register_bpe
from fairseq.dataclass import FairseqDataclass

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.structured_files import read

KINDS: dict[str, list[str]] = {
    "sentencepiece_pair": ["source.spm", "target.spm", "vocab.json"],  # Marian
    "sentencepiece_vocab": ["sentencepiece.bpe.model", "vocab.json"],  # M2M-100
    "tokenizer_json": ["tokenizer.json"],
    "sentencepiece_fairseq": ["sentencepiece.bpe.model"],  # mBART, NLLB
    "sentencepiece_pegasus": ["spiece.model"],
    "bpe": ["vocab.json", "merges.txt"],  # BART
}
"""{kind: the files that it needs}; a folder has the first kind whose files are there"""

SETTINGS = ["tokenizer_config.json", "special_tokens_map.json"]
MORE_FILES = [*SETTINGS, "added_tokens.json", "target_vocab.json"]
"""files that some folders have"""

UNKNOWN = "<unk>"
ESCAPED = re.compile(r"<token:\d+>")


def symbol(token: str, number: int) -> str:
    """The name of a token in fairseq's dictionary: the token itself, or its number where fairseq would misread it.

    fairseq splits lines at any white space. Two numbers never have the same name.
    """
    is_readable = token and not any(character.isspace() for character in token) and not ESCAPED.fullmatch(token)
    return token if is_readable else f"<token:{number}>"


@dataclass
class Tokenizer(ABC):
    """The tokenizer of a folder."""

    kind: str
    """one of `KINDS`"""
    files: list[str]
    """names of the files that it reads"""
    tokens: list[str]
    """by Hugging Face's number; a number that has none, as the last rows of some models, is named as by `symbol`"""
    target_tokens: list[str]
    """the same, but in a Marian model of two vocabularies"""
    special: set[str]
    """tokens that are left out of an output's text, such as languages; `<unk>` is one, and is kept nevertheless"""
    cleans_spaces: bool
    """spaces before punctuation are taken out of an output's text"""
    library: Any
    """what the libraries read: a tokenizer, or SentencePiece's models of source and target"""
    added: dict[str, dict[str, Any]]
    """tokens that SentencePiece does not know, with their properties"""

    @abstractmethod
    def encode(self, text: str, is_target: bool = False) -> list[int]:
        """The numbers of a text, without what the model expects at its ends. Special tokens inside it are read as such.

        Args:
            text: a sentence.
            is_target: it is of the target's language, for which Marian's models have another file.
        """

    @abstractmethod
    def _joined(self, tokens: list[str]) -> str:
        """The text of tokens."""

    def decode(self, numbers: Sequence[int]) -> str:
        """The text of an output without its special tokens, `<unk>` for unknown characters."""
        return self.text(self.target_tokens[number] for number in numbers if number < len(self.target_tokens))

    def text(self, tokens: Iterable[str]) -> str:
        """As `decode`, of tokens by name; a name that is no token is kept as it is."""
        hidden = self.special - {UNKNOWN}
        text = self._joined([token for token in tokens if token not in hidden and not ESCAPED.fullmatch(token)])
        if self.cleans_spaces:
            text = re.sub(r" ([.?!,])", r"\1", text).replace(" ' ", "'")
            text = re.sub(r" (n't|'m|'s|'ve|'re)", r"\1", text)
        return text


class _OfTokenizers(Tokenizer):
    """A tokenizer that the library `tokenizers` reads."""

    def encode(self, text: str, is_target: bool = False) -> list[int]:
        return list(self.library.encode(text, add_special_tokens=False).ids)

    def _joined(self, tokens: list[str]) -> str:
        return str(self.library.decoder.decode(tokens))


@dataclass
class _OfSentencePiece(Tokenizer):
    """SentencePiece's models, whose pieces have other numbers in the model."""

    def __post_init__(self) -> None:
        names = sorted(self.added, key=len, reverse=True)
        self._added = re.compile("(" + "|".join(map(re.escape, names)) + ")")
        self._numbers = [{token: n for n, token in enumerate(side)} for side in (self.tokens, self.target_tokens)]

    def encode(self, text: str, is_target: bool = False) -> list[int]:
        parts = self._added.split(text)  # every second one is an added token
        for place in range(1, len(parts), 2):
            if self.added[parts[place]].get("lstrip"):
                parts[place - 1] = parts[place - 1].rstrip()
            if self.added[parts[place]].get("rstrip"):
                parts[place + 1] = parts[place + 1].lstrip()
        pieces: list[str] = []
        for place, part in enumerate(parts):
            language = re.match(">>.*?<<", part, re.DOTALL) if self.kind == "sentencepiece_pair" else None
            if place % 2 or language:
                pieces.append(language.group() if language else part)
                part = part[language.end() :] if language else ""
            pieces += self.library[is_target].encode(part, out_type=str)
        numbers = self._numbers[is_target]
        return [numbers.get(piece, numbers[UNKNOWN]) for piece in pieces]

    def _joined(self, tokens: list[str]) -> str:
        pieces = [token.replace(UNKNOWN, "\0unk\0") for token in tokens]  # which SentencePiece would write as " ⁇ "
        is_separate = self.tokens is not self.target_tokens
        text = self.library[is_separate].decode_pieces(pieces).replace("▁", " ").strip()
        return str(text.replace("\0unk\0", UNKNOWN))


def read_tokenizer(folder: Path, kind: str | None = None) -> Tokenizer:
    """The tokenizer of a folder; its kind is found out by its files where none is given.

    Raises:
        AggdecError: no such kind, a file is missing or damaged, or a library is not installed.
    """
    there = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if kind is None:
        kind = next((kind for kind, files in KINDS.items() if there.issuperset(files)), None)
    if kind is None:
        sets = "; ".join(" + ".join(files) for files in KINDS.values())
        raise AggdecError(f"{folder}: no tokenizer that can be read; it would need one of: {sets}")
    if kind not in KINDS:
        raise AggdecError(f"{folder}: a tokenizer of the kind {kind!r} cannot be read; kinds are {', '.join(KINDS)}")
    if missing := set(KINDS[kind]) - there:
        raise AggdecError(f"{folder}: {min(missing)}, which the tokenizer needs, is missing")
    files = KINDS[kind] + [name for name in MORE_FILES if name in there]
    try:
        reader = _read_sentencepiece if kind.startswith("sentencepiece") else _read_tokenizers
        return reader(folder, kind, files)
    except (AggdecError, ImportError):
        raise
    except Exception as error:  # the libraries raise bare ones
        raise AggdecError(f"{folder}: {' or '.join(KINDS[kind])} is damaged ({error}); get it again") from None


def _read_tokenizers(folder: Path, kind: str, files: list[str]) -> Tokenizer:
    """By the library `tokenizers`."""
    library = _library("tokenizers")
    config = _config(folder)
    if kind == "tokenizer_json":
        tokenizer = library.Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.no_truncation()
    else:
        tokenizer = library.Tokenizer(library.models.BPE.from_file(*(str(folder / name) for name in KINDS[kind])))
        has_space = config.get("add_prefix_space", False)
        tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=has_space)
        tokenizer.decoder = library.decoders.ByteLevel()
        names = ("special", "lstrip", "rstrip")
        tokenizer.add_tokens(
            [
                library.AddedToken(token, normalized=False, **{name: entry.get(name, False) for name in names})
                for token, entry in _added_tokens(folder, config, ["<s>", "<pad>", "</s>", UNKNOWN, "<mask>"]).items()
            ]
        )
    tokens = _by_number(folder, tokenizer.get_vocab())
    special = {token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special}
    cleans = config.get("clean_up_tokenization_spaces", False) and not isinstance(tokenizer.model, library.models.BPE)
    return _OfTokenizers(kind, files, tokens, tokens, special, cleans, tokenizer, {})


def _read_sentencepiece(folder: Path, kind: str, files: list[str]) -> Tokenizer:
    """By the library `sentencepiece`."""
    library = _library("sentencepiece")
    config = _config(folder)
    names = [name for name in KINDS[kind] if name != "vocab.json"]
    models = [library.SentencePieceProcessor(model_file=str(folder / name)) for name in names]
    specials = ["<s>", "<pad>", "</s>", UNKNOWN]
    if kind == "sentencepiece_fairseq":
        first, left_out = specials, 3  # SentencePiece has <unk> <s> </s>
        specials = [*specials, "<mask>"]
    elif kind == "sentencepiece_pegasus":
        first = ["<pad>", "</s>", "<mask_1>", "<mask_2>", *(f"<unk_{number}>" for number in range(2, 103))]
        left_out, specials = 2, [*first, UNKNOWN]
    elif kind == "sentencepiece_pair":
        specials = specials[1:]
    if "vocab.json" in KINDS[kind]:
        numbers = read(folder / "vocab.json", dict[str, Any])
    else:
        pieces = [models[0].id_to_piece(number) for number in range(left_out, len(models[0]))]
        numbers = {token: number for number, token in enumerate([*first, *pieces])}
    added = _added_tokens(folder, config, specials)
    if kind in ("sentencepiece_vocab", "sentencepiece_fairseq") and not added.keys() - {*specials}:
        raise AggdecError(
            f"{folder}: names no languages; special_tokens_map.json or tokenizer_config.json needs them, as "
            "additional_special_tokens: take them from the model that yours was trained from"
        )
    for token, entry in added.items():
        numbers.setdefault(token, entry.get("number", len(numbers)))
    special = {token for token, entry in added.items() if entry.get("special")}
    tokens = target_tokens = _by_number(folder, numbers)
    if config.get("separate_vocabs"):
        target_tokens = _by_number(folder, read(folder / "target_vocab.json", dict[str, Any]), "decoder_vocab_size")
    cleans = config.get("clean_up_tokenization_spaces", False)
    models = [models[0], models[-1]]
    return _OfSentencePiece(kind, files, tokens, target_tokens, special, cleans, models, added)


def _added_tokens(folder: Path, config: dict[str, Any], specials: list[str]) -> dict[str, dict[str, Any]]:
    """Tokens with their properties and, where a file has it, their number; languages stand before `<mask>`."""
    added = {
        entry["content"]: {**entry, "number": int(n)} for n, entry in config.get("added_tokens_decoder", {}).items()
    }
    for token, number in _json(folder, "added_tokens.json").items():
        added.setdefault(token, {"number": number})
    more = config.get("additional_special_tokens") or config.get("extra_special_tokens") or []
    named = [value for name, value in config.items() if name.endswith("_token") and value]
    for entry in [*(more.values() if isinstance(more, dict) else more), *named, *specials]:
        entry = {"content": entry} if isinstance(entry, str) else entry
        entry = {"lstrip": entry["content"] == "<mask>", **entry, "special": True}
        added[entry["content"]] = {**entry, **added.get(entry["content"], {}), "special": True}
    return added


def _by_number(folder: Path, numbers: dict[str, int], size: str = "vocab_size") -> list[str]:
    """Tokens by number, as many as the model has rows."""
    rows = max(_json(folder, "config.json").get(size, 0), 1 + max(numbers.values()))
    tokens = [f"<token:{number}>" for number in range(rows)]
    for token, number in numbers.items():
        tokens[number] = token
    return tokens


def _config(folder: Path) -> dict[str, Any]:
    return {name: value for file in SETTINGS for name, value in _json(folder, file).items()}


def _json(folder: Path, name: str) -> dict[str, Any]:
    """A file's content; {} if there is none."""
    return read(folder / name, dict[str, Any], "get it again") if (folder / name).is_file() else {}


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise AggdecError(f"the library {name} is not installed: pip install 'fairseq-aggdec[hub]'") from None


@dataclass
class HubConfig(FairseqDataclass):
    """Options of `--bpe hub`."""

    hub_folder: str = "???"


@register_bpe("hub", dataclass=HubConfig)
class HubBPE:
    """`--bpe hub --hub-folder FOLDER`: the tokenizer of an imported model, in fairseq's symbols."""

    def __init__(self, config: HubConfig) -> None:
        self.tokenizer = read_tokenizer(Path(config.hub_folder))
        tokens = self.tokenizer.target_tokens
        self._symbols = [symbol(token, number) for number, token in enumerate(self.tokenizer.tokens)]
        self._tokens = {symbol(token, number): token for number, token in enumerate(tokens)}

    def encode(self, text: str) -> str:
        """Symbols of a source, joined by blanks."""
        return " ".join(self._symbols[number] for number in self.tokenizer.encode(text))

    def decode(self, symbols: str) -> str:
        """The text of an output."""
        return self.tokenizer.text(self._tokens.get(name, name) for name in symbols.split())
