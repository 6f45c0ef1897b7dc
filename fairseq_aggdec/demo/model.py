"""A shipped model with its text pipeline: what fairseq-interactive does between a line of text and its output."""

from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq.data import encoders
from fairseq.models import BaseFairseqModel

from fairseq_aggdec import benchmark
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.tasks.aggressive_translation import AggressiveTranslationTask


@dataclass
class DemoModel:
    """Checkpoint, dictionaries and subword codes of one folder: `model.pt`, `dict.{src,tgt}.txt`, `bpecodes`."""

    task: AggressiveTranslationTask
    models: list[BaseFairseqModel]
    tokenizer: Any
    bpe: Any

    @classmethod
    def load(cls, folder: Path) -> "DemoModel":
        """
        Raises:
            AggdecError: a file is missing.
        """
        for name in ("model.pt", "dict.src.txt", "dict.tgt.txt", "bpecodes"):
            if not (folder / name).is_file():
                raise AggdecError(f"{folder / name}: missing; the package is not complete, install it again")
        task, models = benchmark.load(str(folder / "model.pt"), str(folder), "src", "tgt")
        tokenizer = encoders.build_tokenizer(
            Namespace(
                tokenizer="moses", source_lang="en", target_lang="en", moses_no_dash_splits=True, moses_no_escape=True
            )
        )
        bpe = encoders.build_bpe(Namespace(bpe="subword_nmt", bpe_codes=str(folder / "bpecodes"), bpe_separator="@@"))
        return cls(task, models, tokenizer, bpe)

    @property
    def max_tokens(self) -> int:
        """The longest source, EOS included."""
        return min(model.max_positions()[0] for model in self.models)

    def encode(self, sentence: str) -> torch.Tensor:
        """Token numbers of a raw sentence, EOS included."""
        text = self.bpe.encode(self.tokenizer.encode(sentence))
        return self.task.source_dictionary.encode_line(text, add_if_not_exist=False).long()

    def decode(self, output: torch.Tensor) -> str:
        """Text of an output."""
        text = self.task.target_dictionary.string(output)
        return self.tokenizer.decode(self.bpe.decode(text))

    def tokens(self, output: torch.Tensor) -> list[str]:
        """Subword units of an output, EOS included."""
        return [self.task.target_dictionary[index] for index in output.tolist()]
