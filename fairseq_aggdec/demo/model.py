"""The shipped models with tokeniser and subwords: from a line of text to its output, as in fairseq-interactive."""

from argparse import Namespace
from dataclasses import dataclass
from typing import Any

import torch
from fairseq.data import encoders
from fairseq.models import BaseFairseqModel

from fairseq_aggdec.data.subwords import subword_nmt
from fairseq_aggdec.demo.tasks import DemoTask
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.tasks.aggressive_translation import AggressiveTranslationTask
from fairseq_aggdec.tasks.loading import load
from fairseq_aggdec.writing.tokenizer import decode_for


@dataclass
class DemoModel:
    """Checkpoints, dictionaries and subword codes of one task."""

    task: AggressiveTranslationTask
    models: list[BaseFairseqModel]
    tokenizer: Any
    bpe: Any

    @classmethod
    def load(cls, demo: DemoTask) -> "DemoModel":
        """
        Raises:
            AggdecError: a file is missing.
        """
        for name in demo.files:
            if not (demo.folder / name).is_file():
                raise AggdecError(f"{demo.folder / name}: missing; the package is not complete, install it again")
        options = {"drafter_path": str(demo.folder / demo.drafter)} if demo.drafter else {}
        task, models = load(
            str(demo.folder / "model.pt"), str(demo.folder), demo.source_language, demo.target_language, **options
        )
        tokenizer = encoders.build_tokenizer(
            Namespace(
                tokenizer=demo.tokenizer,
                source_lang=demo.source_language,
                target_lang=demo.target_language,
                moses_no_dash_splits=True,
                moses_no_escape=True,
            )
        )
        return cls(task, models, tokenizer, subword_nmt(demo.folder / "bpecodes"))

    @property
    def max_tokens(self) -> int:
        """The most tokens of a source, EOS included."""
        return min(model.max_positions()[0] for model in self.models)

    def encode(self, sentence: str) -> torch.Tensor:
        """The token numbers of a sentence, EOS included."""
        text = self.bpe.encode(self.tokenizer.encode(sentence))
        return self.task.source_dictionary.encode_line(text, add_if_not_exist=False).long()

    def decode(self, output: torch.Tensor, sentence: str) -> str:
        """The output for a sentence as text."""
        text = self.task.target_dictionary.string(output)
        return decode_for(self.tokenizer, self.bpe.decode(text), sentence)

    def tokens(self, output: torch.Tensor) -> list[str]:
        """The subwords of an output, EOS included."""
        return [self.task.target_dictionary[index] for index in output.tolist()]
