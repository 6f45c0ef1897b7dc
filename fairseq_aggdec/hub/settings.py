"""How an imported model is used: the file `hub.json` of its folder."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path

from fairseq_aggdec import structured_files
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.hub.files import Fields

FILE = "hub.json"
"""the file name of an imported model's settings"""
MODEL = "model.pt"
"""the file name of its checkpoint"""
T5 = ("t5", "mt5")
"""families, by config.json's `model_type`, of T5, Flan-T5, ByT5 and MADLAD-400, and of mT5"""
T5_LENGTH = 512
"""tokens of the longest texts that T5 was trained on, which is no limit; and of an output where a model names none"""
TAGGED = ">><<"
"""target language of a model whose texts begin with their own, as `>>deu<< How are you?`"""
_ADVICE = "import the model again, into a new folder"


def check_prompted(family: str) -> None:
    """Raise `AggdecError` where a model of this family reads no prompt."""
    if family not in T5:
        raise AggdecError(
            f"--prompt: is for T5 and mT5, and not for {family}; leave it out"
        )


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
    """the first tokens of every output after fairseq's `</s>`: `["{target}"]`"""
    generation: Fields
    """the search's options by fairseq's names: beam, lenpen, max_len_a, max_len_b, min_len, block_ngrams"""
    source_lang: str
    """default of `-s`; of a model without language tokens the one name"""
    target_lang: str
    summarizes: bool = False
    """whether a text of many sentences is one input of the original's main use"""

    @classmethod
    def found(cls, folder: Path) -> Settings | None:
        """The settings of an imported folder; None of another. Raises `AggdecError` where they are damaged."""
        if not (folder / FILE).is_file():
            return None
        content = structured_files.read(folder / FILE, Fields, _ADVICE)
        try:
            return cls(**content)
        except TypeError as error:  # it names the field that is missing, or not known
            raise AggdecError(f"{folder / FILE}: {error}; {_ADVICE}") from None

    @classmethod
    def read(cls, folder: Path) -> Settings:
        """As `found`, but raises `AggdecError` where there are none."""
        settings = cls.found(folder)
        if settings is None:
            raise AggdecError(
                f"{folder / FILE}: no such file; name a folder that `aggdec import-hf` has written"
            )
        return settings

    @classmethod
    def greedy_search(cls, folder: Path) -> Fields:
        """`generation` for modes without a beam; {} where the folder is not an imported model's."""
        found = cls.found(folder)
        search = {} if found is None else dict(found.generation)
        search.pop("beam", None)
        return search

    def write(self, folder: Path) -> None:
        """Write them into a folder."""
        structured_files.write(folder / FILE, asdict(self))

    @property
    def takes_tags(self) -> bool:
        """Whether the target language is a token of the source, and none is the model's own."""
        return "{target}" in self.source and not self.target_lang

    def needs(self, options: str) -> str:
        """Why a language must be given, for an error message; `options`: -s, -t, or both."""
        some = ", ".join([*self.languages][:4])
        return f"a model of several languages ({some}, ...): give {options} (serve: --translator-languages)"

    def check_language(self, asked: str, name: str) -> None:
        """Raise `AggdecError` where the model has no language of this name; `asked`: what has named it."""
        if name not in self.languages:
            nearest = ", ".join(get_close_matches(name, self.languages, 4, cutoff=0))
            count = len(self.languages)
            raise AggdecError(
                f"{asked}: the model has no such language; of its {count} the nearest are {nearest}"
            )

    def prompt_template(
        self, source_lang: str, target_lang: str
    ) -> tuple[list[str], list[str], list[str]]:
        """The tokens before a source's text, those after it, and the first ones of every output.

        `target_lang`: `TAGGED` where the text itself begins with the language.

        Raises:
            AggdecError: the model has no such language.
        """
        before, _, after = self.source.partition("{text}")
        if target_lang == TAGGED:
            before = before.replace("{target}", "")
        parts = before.split(), after.split(), self.forced
        named = {"{source}": ("-s", source_lang), "{target}": ("-t", target_lang)}
        for place, (option, name) in named.items():
            if any(place in part for part in parts):
                self.check_language(f"{option} {name}", name)
        if not self.languages and self.target_lang not in (target_lang, "target"):
            raise AggdecError(
                f"-t {target_lang}: the model has no such language; its only one is {self.target_lang}"
            )
        words = {
            place: self.languages.get(name, "") for place, (_, name) in named.items()
        }
        source_start, source_end, forced = (
            [words.get(word, word) for word in part] for part in parts
        )
        return source_start, source_end, forced
