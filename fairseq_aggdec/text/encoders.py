"""The tokeniser and the subwords of a model, by fairseq's names and options."""

import re
from argparse import Namespace
from pathlib import Path
from typing import Any

from fairseq.data import Dictionary, encoders
from fairseq.registry import REGISTRIES
from torch import Tensor

from fairseq_aggdec.errors import AggdecError, option_name
from fairseq_aggdec.hub.tokenizers import HubBPE

_ESCAPE = re.compile(r"&(?:quot|apos|amp|lt|gt|#\d+);")


class Encoders:
    """Tokeniser and encoder of subwords; either may be None, and the text then is in tokens, or in whole words."""

    def __init__(
        self,
        tokenizer: str | None,
        bpe: str | None,
        options: dict[str, Any],
        languages: dict[str, str],
    ) -> None:
        """
        Args:
            tokenizer, bpe: fairseq's names.
            options: of these two.
            languages: `source_lang` and `target_lang`, which some tokenisers read.

        Raises:
            AggdecError: fairseq has no such encoder, nothing reads an option, or an option or a file cannot be used.
        """
        _check({"tokenizer": tokenizer, "bpe": bpe}, options)
        args = Namespace(tokenizer=tokenizer, bpe=bpe, **languages, **options)
        try:
            self.tokenizer: Any = encoders.build_tokenizer(args)
            self.bpe: Any = encoders.build_bpe(args)
        except (ImportError, OSError, KeyError, AttributeError) as error:
            raise AggdecError(
                f"--tokenizer {tokenizer}, --bpe {bpe}: {error}"
            ) from error

    def encode(self, sentence: str, is_target: bool = False) -> str:
        """A sentence in subwords, joined by spaces; `is_target`: in those of an output."""
        if self.tokenizer is not None:
            sentence = self.tokenizer.encode(sentence)
        if isinstance(self.bpe, HubBPE):  # which may have others for outputs
            return self.bpe.encode(sentence, is_target)
        return sentence if self.bpe is None else str(self.bpe.encode(sentence))

    def unknown_escapes(self, dictionary: Dictionary) -> list[str]:
        """The escapes that the tokeniser writes, if the dictionary has none of them."""
        if self.tokenizer is None:
            return []
        escapes = _ESCAPE.findall(self.tokenizer.encode("& \" '"))
        is_known = any(escape in dictionary.indices for escape in escapes)
        return [] if is_known else escapes


def _check(names: dict[str, str | None], options: dict[str, Any]) -> None:
    """Raise `AggdecError` where there is no encoder of a name, or none has an option, or a file is a folder."""
    known: set[str] = set()
    for kind, name in names.items():
        registry = REGISTRIES[kind]
        if name is not None and name not in registry["registry"]:
            choices = ", ".join(sorted(registry["registry"]))
            raise AggdecError(f"{kind} {name}: choose one of {choices}")
        if name in registry["dataclass_registry"]:
            known |= set(registry["dataclass_registry"][name].__dataclass_fields__)
    for option, value in options.items():
        if option not in known:
            raise AggdecError(
                f"{option}: neither an option of the task nor of tokenizer {names['tokenizer']} and bpe {names['bpe']}"
            )
        is_file = isinstance(value, str) and not option.endswith("_folder")
        if is_file and Path(value).is_dir():
            raise AggdecError(
                f"{option_name(option)} {value}: a folder; name a file in it"
            )


def mostly_unknown(tokens: Tensor, dictionary: Dictionary) -> bool:
    """Whether more than a third of a sentence's tokens, its EOS left out, are not in the dictionary."""
    return 3 * int(tokens.eq(dictionary.unk()).sum()) > len(tokens) - 1


def missing_subwords(line: str) -> str:
    """The warning for a line of unknown words."""
    return (
        f"many words of '{line[:60]}' are unknown: name the subwords that the model was trained with (--bpe "
        "subword_nmt --bpe-codes FILE, or --bpe sentencepiece --sentencepiece-model FILE), and its --tokenizer"
    )
