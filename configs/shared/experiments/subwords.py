"""Tokenisation and subwords of whole files, by fairseq's own encoders.

`fairseq-interactive` gives running text the same subwords as in training by `--tokenizer moses
--moses-no-escape --moses-no-dash-splits --bpe subword_nmt --bpe-codes codes`.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subword_nmt.learn_bpe import learn_bpe
from tqdm import tqdm

from experiments.processes import chunks, in_processes
from fairseq_aggdec.errors import AggdecError

if TYPE_CHECKING:  # loading fairseq takes seconds, and reading files does not need it
    from fairseq.data.encoders.gpt2_bpe import GPT2BPE
    from fairseq.data.encoders.moses_tokenizer import MosesTokenizer
    from fairseq.data.encoders.subword_nmt_bpe import SubwordNMTBPE

    from fairseq_aggdec.text.tokenizer import AsWrittenTokenizer


GPT2_FILES = ("encoder.json", "vocab.bpe")
"""the names of the files of GPT-2's subwords"""


def moses(language: str) -> MosesTokenizer:
    """fairseq's Moses tokeniser, which neither escapes characters nor splits at dashes."""
    from fairseq.data.encoders.moses_tokenizer import (
        MosesTokenizer,
        MosesTokenizerConfig,
    )

    return MosesTokenizer(
        MosesTokenizerConfig(
            source_lang=language,
            target_lang=language,
            moses_no_dash_splits=True,
            moses_no_escape=True,
        )
    )


def as_written(language: str = "en") -> AsWrittenTokenizer:
    """The tokeniser of English correctors, which shows them only characters that they read."""
    from fairseq_aggdec.text.tokenizer import AsWrittenTokenizer

    if language != "en":
        raise AggdecError(
            f"the tokeniser as_written is for English; the language is {language}"
        )
    return AsWrittenTokenizer()


def subword_nmt(codes: Path) -> SubwordNMTBPE:
    """fairseq's subword-nmt encoder for the merges in the file `codes`."""
    from fairseq.data.encoders.subword_nmt_bpe import SubwordNMTBPE, SubwordNMTBPEConfig

    return SubwordNMTBPE(SubwordNMTBPEConfig(bpe_codes=str(codes)))


def gpt2(encoder_json: Path, vocab_bpe: Path) -> GPT2BPE:
    """fairseq's GPT-2 encoder, for BART."""
    from fairseq.data.encoders.gpt2_bpe import GPT2BPE, GPT2BPEConfig

    return GPT2BPE(
        GPT2BPEConfig(
            gpt2_encoder_json=str(encoder_json), gpt2_vocab_bpe=str(vocab_bpe)
        )
    )


def encode_lines(
    lines: Iterable[str], encoder: Any, workers: int, label: str
) -> Iterator[str]:
    """Encode lines by fairseq's encoder, in order, in `workers` processes, with a progress bar."""

    def encode(portion: tuple[int, list[str]]) -> list[str]:
        return [str(encoder.encode(line)) for line in portion[1]]

    portions = chunks(tqdm(lines, desc=label, unit=" lines"), 2000)
    return chain.from_iterable(in_processes(encode, portions, workers))


def learn_codes(
    lines: Iterable[str], codes: Path, symbols: int, min_frequency: int
) -> None:
    """Learn byte pair merges from tokenised lines and write them to `codes`.

    Args:
        lines: tokenised text.
        codes: the file to write.
        symbols: size of the vocabulary, single characters included (subword-nmt's `--total-symbols`).
        min_frequency: the least frequency of a merge.
    """
    # subword-nmt reads its text from a file object
    with codes.open("w", encoding="utf-8") as output:
        learn_bpe(
            io.StringIO("\n".join(lines)),
            output,
            symbols,
            min_frequency,
            total_symbols=True,
        )
