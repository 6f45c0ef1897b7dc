"""Tokenizers of imported models; `test_hub_models` compares their numbers and texts with transformers'."""

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fairseq.data import Dictionary
from fairseq.data.encoders import build_bpe

from fairseq_aggdec.hub.tokenizers import Tokenizer, read_tokenizer, symbol
from tests.hub.imported_models import MODELS, NAMES, copied
from tests.support.helpers import refused_with


def decoded(tokenizer: Tokenizer, indices: Sequence[int]) -> str:
    return tokenizer.text(tokenizer.target_tokens[index] for index in indices)


LINES = [
    "Tom is here.",
    " two  spaces ",
    "\t\x00 a\u2028b </s> 😀 é",
    "A <mask> B<unk>",
    ">>deu<< __de__ deu_Latn",
]


@pytest.mark.parametrize("name", NAMES)
def test_text_goes_through_a_dictionary_file_of_fairseq_and_back(
    name: str, tmp_path: Path
) -> None:
    tokenizer = read_tokenizer(MODELS / name)
    odd = ["a b", "", "\u2028", "<token:7>", "#fairseq:overwrite"]
    symbols = [
        symbol(token, number) for number, token in enumerate([*tokenizer.tokens, *odd])
    ]
    written = Dictionary()
    for token in symbols:
        written.add_symbol(token)
    written.save(str(tmp_path / "dict.txt"))
    dictionary = Dictionary.load(str(tmp_path / "dict.txt"))
    assert dictionary.symbols == written.symbols
    assert len({*symbols}) == len(symbols)
    bpe = build_bpe(Namespace(bpe="hub", hub_folder=str(MODELS / name)))
    for line in LINES:
        read = dictionary.encode_line(
            bpe.encode(line), add_if_not_exist=False, append_eos=False
        )
        assert [
            symbols.index(dictionary[number]) for number in read
        ] == tokenizer.encode(line)
        target = tokenizer.encode(line, is_target=True)
        assert bpe.decode(bpe.encode(line, is_target=True)) == decoded(
            tokenizer, target
        )
        unknown = tokenizer.target_tokens.index("<unk>")
        assert decoded(tokenizer, target) == decoded(
            tokenizer, [number for number in target if number != unknown]
        )


LISTS = ("added_tokens_decoder", "additional_special_tokens", "extra_special_tokens")
UNLISTED = {
    "special_tokens_map.json": None,
    "tokenizer_config.json": dict.fromkeys(LISTS),
}
"""no file lists special tokens"""


@pytest.mark.parametrize(
    "name, changes, kind",
    [
        ("bart", {"tokenizer.json": None}, "bpe"),
        ("nllb", {"tokenizer.json": None}, "sentencepiece_fairseq"),
        ("pegasus", {"tokenizer.json": None}, "sentencepiece_pegasus"),
        ("madlad", {"tokenizer.json": None}, "sentencepiece_t5"),
        ("t5", {"tokenizer.json": None}, "sentencepiece_t5"),
        ("m2m_100", UNLISTED, "sentencepiece_vocab"),
        ("mbart50", UNLISTED, "sentencepiece_fairseq"),
    ],
)
def test_a_folder_without_one_of_its_files_or_lists_has_the_same_tokens_and_new_ones_behind_them(
    name: str, changes: dict[str, Any], kind: str, tmp_path: Path
) -> None:
    whole = read_tokenizer(MODELS / name)
    older = read_tokenizer(copied(name, tmp_path / name, changes))
    assert older.kind == kind
    assert (older.tokens, older.special) == (whole.tokens, whole.special)
    for text in LINES[:2]:
        assert older.encode(text) == whole.encode(text)
        assert (
            decoded(older, older.encode(text)).strip()
            == decoded(whole, whole.encode(text)).strip()
        )
    (tmp_path / name / "added_tokens.json").write_text(
        f'{{"<new>": {len(whole.tokens)}}}'
    )
    assert read_tokenizer(tmp_path / name).tokens == [*whole.tokens, "<new>"]


@pytest.mark.parametrize("name, text", [("marian", "It is."), ("bart", "It is .")])
def test_spaces_before_punctuation_go_where_the_configuration_says_so_and_transformers_obeys(
    name: str, text: str, tmp_path: Path
) -> None:
    cleans = {"tokenizer_config.json": {"clean_up_tokenization_spaces": True}}
    tokenizer = read_tokenizer(copied(name, tmp_path / name, cleans))
    assert decoded(tokenizer, tokenizer.encode("It is .")) == text


def test_what_cannot_be_read_is_named_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refused_with(
        r"no tokenizer with its files; known are sentencepiece_pair: source.spm and"
    ):
        read_tokenizer(tmp_path)
    with refused_with(r"--bpe hub: needs --hub-folder"):
        build_bpe(Namespace(bpe="hub", hub_folder=""))
    with refused_with(
        r"_config.json: language_codes: 'all' is not supported, only m2m100 or wmt21"
    ):
        read_tokenizer(
            copied(
                "m2m_100",
                tmp_path / "m2m",
                {"tokenizer_config.json": {"language_codes": "all"}},
            )
        )
    marian = copied("marian_two", tmp_path / "marian", {"source.spm": None})
    (marian / "target.spm").rename(marian / "source.spm")
    (marian / "target.spm").symlink_to(marian / "source.spm")
    with refused_with(r"source.spm: most of its pieces are not in the vocabulary"):
        read_tokenizer(marian)
    for file, library in (
        ("tokenizer.json", "tokenizers"),
        ("spiece.model", "sentencepiece"),
    ):
        (tmp_path / file).write_text("{")
        with refused_with(rf"{file} is missing or damaged \(.*\); download it again"):
            read_tokenizer(tmp_path)
        monkeypatch.setitem(sys.modules, library, None)
        with refused_with(
            rf"{library} is not installed: pip install 'fairseq-aggdec\[hub\]'"
        ):
            read_tokenizer(tmp_path)
        (tmp_path / file).unlink()
