"""Tokenizers of Hugging Face's checkpoints: the token indices of a text, and the text of indices.

The libraries `tokenizers` and `sentencepiece` (the extra `hub`) are imported when a folder is read.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from fairseq.data.encoders import register_bpe
from fairseq.dataclass import FairseqDataclass

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.hub.files import Fields, read_json
from fairseq_aggdec.hub.settings import FILE, T5, T5_LENGTH

KINDS: dict[str, list[str]] = {
    "sentencepiece_pair": ["source.spm", "target.spm", "vocab.json"],  # Marian
    "sentencepiece_vocab": ["sentencepiece.bpe.model", "vocab.json"],  # M2M-100
    "tokenizer_json": ["tokenizer.json"],
    "sentencepiece_fairseq": ["sentencepiece.bpe.model"],  # mBART, NLLB
    "sentencepiece_t5": ["spiece.model"],
    "sentencepiece_pegasus": ["spiece.model"],
    "bpe": ["vocab.json", "merges.txt"],  # BART
    "bytes": ["tokenizer_config.json"],  # ByT5, which has no other file
}
"""{kind: the files that it needs}; a folder has the first kind whose files are there, of a model that has such ones"""
CONFIG = "tokenizer_config.json", "special_tokens_map.json"
MORE_FILES = *CONFIG, "added_tokens.json", "target_vocab.json"
"""files that some folders have"""

UNKNOWN = "<unk>"
FIRST = ["<s>", "<pad>", "</s>", UNKNOWN]
"""the first symbols of fairseq's dictionaries"""
SPECIAL = {
    "sentencepiece_pair": FIRST[1:],
    "sentencepiece_vocab": FIRST,
    "sentencepiece_fairseq": [*FIRST, "<mask>"],
    "sentencepiece_pegasus": [
        "<pad>",
        "</s>",
        "<mask_1>",
        "<mask_2>",
        *(f"<unk_{n}>" for n in range(2, 103)),
        UNKNOWN,
    ],
    "bpe": [*FIRST, "<mask>"],
    "sentencepiece_t5": FIRST[1:],
    "bytes": FIRST[1:],
}
"""special tokens that a folder need not name; where it has no vocab.json, all but the last have the first indices"""
MOST_SENTINELS = 1000
"""of a T5; published ones have at most 300"""
M2M_LANGUAGES = {
    "m2m100": "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr "
    "ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps "
    "pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu",
    "wmt21": "en ha is ja cs ru zh de",
}
"""languages after vocab.json, by `language_codes` of tokenizer_config.json; not all folders list them"""
_MBART_50 = (
    "ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM ne_NP nl_XX "
    "ro_RO ru_RU si_LK tr_TR vi_VN zh_CN af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN "
    "pl_PL ps_AF pt_XX sv_SE sw_KE ta_IN te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI"
).split()
AFTER_PIECES = {
    "MBartTokenizer": [*_MBART_50[:25], "<mask>"],
    "MBart50Tokenizer": [*_MBART_50, "<mask>"],
}
"""languages and `<mask>`, by `tokenizer_class` of tokenizer_config.json; not all folders list them"""
ESCAPED = re.compile(r"<token:\d+>")


def symbol(token: str, index: int) -> str:
    """The name of a token in fairseq's dictionary: the token itself, or its index where fairseq would misread it.

    fairseq splits lines at any white space. Two indices never have the same name.
    """
    is_readable = (
        token
        and not any(character.isspace() for character in token)
        and not ESCAPED.fullmatch(token)
    )
    return token if is_readable else f"<token:{index}>"


@dataclass(frozen=True)
class Tokenizer:
    """The tokenizer of a folder."""

    kind: str
    """one of `KINDS`"""
    files: list[str]
    """names of the files that it reads"""
    tokens: list[str]
    """by Hugging Face's index; an index that has no token is named as by `symbol`"""
    target_tokens: list[str]
    """the same, but in a Marian model of two vocabularies"""
    special: set[str]
    """tokens that an output's text lacks, such as languages and `<unk>`"""
    cleans_spaces: bool
    """an output's text has no spaces before its punctuation"""
    encode: Callable[..., list[int]]
    """(text: str, is_target: bool = False): the indices of a text, without what a model expects at its ends

    Special tokens inside the text are read as such. `is_target`: it is in the language of outputs, for which Marian has
    another SentencePiece model.
    """
    joined: Callable[[list[str]], str]
    """the text of tokens"""

    def prompt(self, text: str) -> list[str]:
        """The symbols of a text that is read before others. Raises `AggdecError` where they are too many."""
        # where tokens are pieces, the first one of what follows has the space before it
        written = text if self.kind == "bytes" else text.rstrip()
        found = self.encode(written)
        if len(found) >= T5_LENGTH:
            raise AggdecError(
                f"--prompt: has {len(found)} tokens, and T5 was trained on {T5_LENGTH} with the text; give a short one"
            )
        return [symbol(self.tokens[index], index) for index in found]

    def text(self, tokens: Iterable[str]) -> str:
        """The text of an output without its special tokens, as transformers gives it (`skip_special_tokens`).

        A name that is no token is kept as it is.
        """
        text = self.joined(
            [
                token
                for token in tokens
                if token not in self.special and not ESCAPED.fullmatch(token)
            ]
        )
        if self.cleans_spaces:
            text = re.sub(r" ([.?!,])", r"\1", text).replace(" ' ", "'")
            text = re.sub(r" (n't|'m|'s|'ve|'re)", r"\1", text)
        return text


def read_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a folder; its kind is found out by its files.

    Its indices are those that the files define, and that transformers 4 gives. transformers 5 makes the tokenizers of
    mBART, NLLB, Pegasus, T5 and mT5 anew from their vocabulary, and so reads some texts otherwise: "a " ends with a
    piece "▁".

    Raises:
        AggdecError: a file is missing or damaged, or a library is not installed.
    """
    there = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    model = read_json(folder, "config.json", FILE, optional=True)
    others = set()
    if model.get("model_type", model.get("family")) not in T5:
        others.add("sentencepiece_t5")
    config = read_json(folder, *CONFIG, optional=True)
    if "ByT5" not in str(config.get("tokenizer_class")):
        others.add("bytes")
    kind = next(
        (
            kind
            for kind, files in KINDS.items()
            if there.issuperset(files) and kind not in others
        ),
        None,
    )
    if kind is None:
        known = "; ".join(
            f"{kind}: {' and '.join(files)}" for kind, files in KINDS.items()
        )
        raise AggdecError(f"{folder}: no tokenizer with its files; known are {known}")
    files = KINDS[kind] + [name for name in MORE_FILES if name in there]
    if kind == "bytes":
        return _bytes(folder, files)
    library = "sentencepiece" if kind.startswith("sentencepiece") else "tokenizers"
    try:
        make = _sentencepiece if library == "sentencepiece" else _tokenizers
        return make(import_module(library), folder, kind, files)
    except AggdecError:
        raise
    except ImportError:
        raise AggdecError(
            f"{library} is not installed: pip install 'fairseq-aggdec[hub]'"
        ) from None
    except Exception as error:  # the libraries raise bare ones
        names = " or ".join(KINDS[kind])
        raise AggdecError(
            f"{folder}: {names} is missing or damaged ({error}); download it again"
        ) from None


def _tokenizers(library: Any, folder: Path, kind: str, files: list[str]) -> Tokenizer:
    """A tokenizer that the library `tokenizers` runs."""
    config = read_json(folder, *CONFIG, optional=True)
    if kind == "tokenizer_json":
        tokenizer = library.Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.no_truncation()
    else:
        tokenizer = library.Tokenizer(
            library.models.BPE.from_file(*(str(folder / name) for name in KINDS[kind]))
        )
        space = config.get("add_prefix_space", False)
        tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(
            add_prefix_space=space
        )
        tokenizer.decoder = library.decoders.ByteLevel()
        for token, entry in _added_tokens(folder, config, SPECIAL[kind]).items():
            options = {
                name: entry.get(name, False) for name in ("special", "lstrip", "rstrip")
            }
            tokenizer.add_tokens(
                [library.AddedToken(token, normalized=False, **options)]
            )
    # what it says of its tokens
    tokens = _by_index(tokenizer.get_vocab())
    special = {
        token.content
        for token in tokenizer.get_added_tokens_decoder().values()
        if token.special
    }
    cleans = config.get("clean_up_tokenization_spaces", False) and not isinstance(
        tokenizer.model, library.models.BPE
    )

    def encode(text: str, is_target: bool = False) -> list[int]:
        return list(tokenizer.encode(text, add_special_tokens=False).ids)

    return Tokenizer(
        kind, files, tokens, tokens, special, cleans, encode, tokenizer.decoder.decode
    )


def _sentencepiece(
    library: Any, folder: Path, kind: str, files: list[str]
) -> Tokenizer:
    """Models of SentencePiece, whose pieces have other indices in the checkpoint."""
    config = read_json(folder, *CONFIG, optional=True)
    names = [name for name in KINDS[kind] if name != "vocab.json"]
    models = [
        library.SentencePieceProcessor(model_file=str(folder / name)) for name in names
    ]
    # the vocabulary: pieces, then added tokens and languages
    specials = SPECIAL[kind]
    sentinels: dict[str, Fields] = {}
    if "vocab.json" in files:
        indices = read_json(folder, "vocab.json")
    elif kind == "sentencepiece_t5":  # all pieces, then sentinels, the last first
        pieces = models[0].id_to_piece([*range(len(models[0]))])
        specials = [token for token in specials if token in pieces]
        sentinels = _sentinels(config, 100, strips=True)
        indices = {
            token: index for index, token in enumerate([*pieces, *reversed(sentinels)])
        }
    else:
        # of the pieces that are not special in SentencePiece
        first = 2 if kind == "sentencepiece_pegasus" else 3
        pieces = [
            models[0].id_to_piece(index) for index in range(first, len(models[0]))
        ]
        indices = {
            token: index for index, token in enumerate([*specials[:-1], *pieces])
        }
    added = _added_tokens(folder, config, specials) | sentinels
    languages: list[str] = []
    if kind == "sentencepiece_vocab":
        codes = str(config.get("language_codes", "m2m100"))
        known = " or ".join(M2M_LANGUAGES)
        if codes not in M2M_LANGUAGES:
            raise AggdecError(
                f"{folder / CONFIG[0]}: language_codes: {codes!r} is not supported, only {known}"
            )
        languages = [f"__{code}__" for code in M2M_LANGUAGES[codes].split()]
    # those that have an index follow those that have none
    for token in sorted(
        [*added, *languages], key=lambda token: "index" in added.get(token, {})
    ):
        indices.setdefault(token, added.get(token, {}).get("index", len(indices)))
    sides = [
        indices,
        read_json(folder, "target_vocab.json")
        if config.get("separate_vocabs")
        else indices,
    ]
    for name, model, side in zip(names, models, sides, strict=False):
        pieces = model.id_to_piece([*range(len(model))])
        if 2 * sum(piece in side for piece in pieces) < len(pieces):
            raise AggdecError(
                f"{folder / name}: most of its pieces are not in the vocabulary; download both again"
            )
    # reading and writing texts
    tokens, target_tokens = map(_by_index, sides)
    unknown = [side[UNKNOWN] for side in sides]
    split = _splitter(added)

    def encode(text: str, is_target: bool = False) -> list[int]:
        pieces: list[str] = []
        for place, part in enumerate(split.split(text)):
            if place % 2:  # an added token
                pieces.append(part.strip())
                continue
            if kind == "sentencepiece_pair" and (
                language := re.match(">>.*?<<", part, re.DOTALL)
            ):
                pieces.append(language.group())
                part = part[language.end() :]
            pieces += models[-1 if is_target else 0].encode(part, out_type=str)
        if kind == "sentencepiece_t5":
            _drop_end(pieces)
        return [sides[is_target].get(piece, unknown[is_target]) for piece in pieces]

    def joined(tokens: list[str]) -> str:
        return str(models[-1].decode_pieces(tokens).replace("▁", " ").strip())

    special = {token for token, entry in added.items() if entry.get("special")}.union(
        languages
    )
    cleans = config.get("clean_up_tokenization_spaces", False)
    return Tokenizer(
        kind, files, tokens, target_tokens, special, cleans, encode, joined
    )


def _bytes(folder: Path, files: list[str]) -> Tokenizer:
    """The tokenizer of ByT5, whose tokens are bytes, named as the character of this number."""
    config = read_json(folder, *CONFIG, optional=True)
    specials = SPECIAL["bytes"]
    sentinels = _sentinels(config, 125, strips=False)
    tokens = [*specials, *map(chr, range(256)), *sentinels]
    added = _added_tokens(folder, config, specials) | sentinels
    # unless the folder says otherwise, these take the spaces around them
    described = [
        value["content"]
        for value in config.values()
        if isinstance(value, dict) and "content" in value
    ]
    for token in specials:
        if token not in described and "index" not in added[token]:
            added[token] |= {"lstrip": True, "rstrip": True}
    indices = {token: index for index, token in enumerate(tokens)}
    for token, entry in added.items():
        indices.setdefault(token, entry.get("index", len(indices)))
    tokens = _by_index(indices)
    split = _splitter(added)

    def encode(text: str, is_target: bool = False) -> list[int]:
        pieces: list[str] = []
        for place, part in enumerate(split.split(text)):
            # an added token, or a text
            pieces += [part.strip()] if place % 2 else map(chr, part.encode())
        _drop_end(pieces)
        return [indices[piece] for piece in pieces]

    def joined(tokens: list[str]) -> str:
        parts = (
            bytes([ord(token)]) if len(token) == 1 else token.encode()
            for token in tokens
        )
        return b"".join(parts).decode(errors="ignore")

    special = {token for token, entry in added.items() if entry.get("special")}
    cleans = config.get("clean_up_tokenization_spaces", False)
    return Tokenizer("bytes", files, tokens, tokens, special, cleans, encode, joined)


def _sentinels(config: Fields, count: int, strips: bool) -> dict[str, Fields]:
    """T5's tokens for parts that were left out of a text, in their order, as `_added_tokens` returns them.

    `count`: their number where the folder does not say it; `strips`: they take the spaces around them.
    """
    count = config.get("extra_ids", count)
    if type(count) is not int or not 0 <= count <= MOST_SENTINELS:
        raise AggdecError(
            f"{CONFIG[0]}: extra_ids: {count!r} is no number up to {MOST_SENTINELS}; download the file again"
        )
    names = [f"<extra_id_{number}>" for number in range(count)]
    return {
        name: {"content": name, "special": True, "lstrip": strips, "rstrip": strips}
        for name in names
    }


def _drop_end(pieces: list[str]) -> None:
    """T5's tokenizers do not add an EOS to a text that ends with one."""
    if pieces[-1:] == [FIRST[2]]:
        pieces.pop()


def _splitter(added: dict[str, Fields]) -> re.Pattern[str]:
    """Splits a text at added tokens, the longest first; some take the spaces before or after them."""
    patterns = []
    for token in sorted(added, key=len, reverse=True):
        before = r"(?:(?<!\s)\s*)?" if added[token].get("lstrip") else ""
        after = r"\s*" if added[token].get("rstrip") else ""
        patterns.append(before + re.escape(token) + after)
    return re.compile(f"({'|'.join(patterns)})")


def _added_tokens(
    folder: Path, config: Fields, specials: list[str]
) -> dict[str, Fields]:
    """Tokens that a text is split at, and their properties: `special`, `lstrip`, perhaps `rstrip` and an `index`.

    Those without an index follow the vocabulary in this order: languages, then `<mask>`.
    """
    with_index = config.get("added_tokens_decoder", {}).items()
    added = {
        entry["content"]: entry | {"index": int(index)} for index, entry in with_index
    }
    for token, index in read_json(folder, "added_tokens.json", optional=True).items():
        added.setdefault(token, {"index": index})
    # those that are special by their role
    first = AFTER_PIECES.get(
        str(config.get("tokenizer_class")).removesuffix("Fast"), []
    )
    more = (
        config.get("additional_special_tokens")
        or config.get("extra_special_tokens")
        or []
    )
    named = [
        value for name, value in config.items() if name.endswith("_token") and value
    ]
    for entry in [
        *first,
        *(more.values() if isinstance(more, dict) else more),
        *named,
        *specials,
    ]:
        new = (
            {"content": entry, "lstrip": entry == "<mask>"}
            if isinstance(entry, str)
            else entry
        )
        added[new["content"]] = new | added.get(new["content"], {}) | {"special": True}
    return added


def _by_index(indices: dict[str, int]) -> list[str]:
    names = {index: token for token, index in indices.items()}
    return [names.get(index, symbol("", index)) for index in range(1 + max(names))]


@dataclass
class HubConfig(FairseqDataclass):
    """Options of `--bpe hub`."""

    hub_folder: str = field(
        default="",
        metadata={"help": "folder that aggdec import-hf has written, of --bpe hub"},
    )


@register_bpe("hub", dataclass=HubConfig)
class HubBPE:
    """The tokenizer of an imported model, in symbols of its dictionary."""

    def __init__(self, config: HubConfig) -> None:
        if not config.hub_folder:
            raise AggdecError(
                "--bpe hub: needs --hub-folder, a folder that aggdec import-hf has written"
            )
        self.tokenizer = read_tokenizer(Path(config.hub_folder))
        sides = self.tokenizer.tokens, self.tokenizer.target_tokens
        self._symbols = [
            [symbol(token, index) for index, token in enumerate(side)] for side in sides
        ]
        self._tokens = dict(zip(self._symbols[True], sides[True], strict=True))

    def encode(self, text: str, is_target: bool = False) -> str:
        """The symbols of a source, or of a text in the language of outputs, joined by spaces."""
        return " ".join(
            self._symbols[is_target][index]
            for index in self.tokenizer.encode(text, is_target)
        )

    def decode(self, symbols: str) -> str:
        """The text of an output."""
        return self.tokenizer.text(
            self._tokens.get(name, name) for name in symbols.split()
        )
