"""How an imported model is used: the file `hub.json` of its folder."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from fairseq_aggdec import structured_files
from fairseq_aggdec.errors import AggdecError

FILE, MODEL = "hub.json", "model.pt"
"""names of an imported folder's settings and checkpoint"""
_ADVICE = "import the model again, into a new folder"
_TYPES = {"str": str, "dict[str, str]": dict, "list[str]": list, "dict[str, Any]": dict}


@dataclass(frozen=True)
class Settings:
    """What the folder of an imported model says about its use."""

    family: str
    """config.json's `model_type`"""
    tokenizer: str
    """one of `hub.tokenizers.KINDS`"""
    languages: dict[str, str]
    """the model's token of each language, by the name that `-s` and `-t` take: `{"de": "__de__"}`; {}: it has none"""
    source: str
    """how the encoder's input is made of `{text}`, its language `{source}` and that of the output, `{target}`"""
    forced: list[str]
    """the first tokens of every output behind fairseq's `</s>`: `["{target}"]`"""
    generation: dict[str, Any]
    """the search's options by fairseq's names: beam, lenpen, max_len_a, max_len_b, min_len, block_ngrams"""
    source_lang: str
    """default of `-s`; of a model without language tokens the one name"""
    target_lang: str

    @classmethod
    def read(cls, folder: Path) -> Settings:
        """The settings of an imported folder.

        Raises:
            AggdecError: it has none, or they are damaged.
        """
        path = folder / FILE
        if not path.is_file():
            raise AggdecError(f"{path}: no such file; name a folder that `aggdec import-hf` has written")
        content = structured_files.read(path, dict[str, Any], _ADVICE)
        for field in fields(cls):
            if not isinstance(content.get(field.name), _TYPES[str(field.type)]):
                raise AggdecError(f"{path}: {field.name} is missing or of another type; {_ADVICE}")
        if unknown := content.keys() - {field.name for field in fields(cls)}:
            raise AggdecError(f"{path}: {min(unknown)} is not known to this version; {_ADVICE}")
        return cls(**content)

    def write(self, folder: Path) -> None:
        """Write them into a folder."""
        structured_files.write(folder / FILE, asdict(self))
