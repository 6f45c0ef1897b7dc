"""What an experiment's `prepare.yaml` says: where its sentences come from, and what is made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairseq_aggdec.data.corruption_files import FileCorruption
from fairseq_aggdec.data.pair_files import PairFile
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.structured_files import made_of, read_yaml

_ADVICE = "compare with the files in configs/"


@dataclass(frozen=True)
class Languages:
    """Names of the two sides, the suffixes of all files."""

    source: str
    target: str


@dataclass(frozen=True)
class CleanText:
    """A file of clean sentences, one a line."""

    file: str
    column: int | None = None
    """of a table with tabs; None: the whole line"""
    repeat: int = 1
    """how often each sentence is trained on"""
    running_text: bool = False
    """neighbouring lines belong together, and may be joined"""
    modern_only: bool = False
    """leave out what does not read modern, by the words of the files before"""
    max_unknown_words: int = 0
    """in a sentence of a `modern_only` file"""


@dataclass(frozen=True)
class Joined:
    """Long training examples of neighbouring sentences; see `splits.join_neighbours`."""

    lines: int
    min_words: int
    max_words: int


@dataclass(frozen=True)
class UnusualCharacters:
    """Characters that clean prose does not have, alike on both sides."""

    share: float
    """of the training sentences"""
    seed: int


@dataclass(frozen=True)
class JoinedPairs:
    """Long training pairs made of short ones; see `sentence_pairs.join_pairs`."""

    lines: int
    max_words: int


@dataclass(frozen=True)
class SentencePairs:
    """One parallel corpus, a table with tabs, that is split into training and held-out pairs."""

    file: str
    columns: list[int]
    """of source and target, from 0"""
    long_words: int = 0
    """a source of so many words is a long one; 0: none is"""
    long_share: float = 0.0
    """of each held-out set"""
    joined_pairs: JoinedPairs | None = None


@dataclass(frozen=True)
class Denoising:
    """Noisy texts to restore; see `documents.denoising_pairs`."""

    max_words: int
    deletions: float


@dataclass(frozen=True)
class Documents:
    """Documents and their summaries, a JSON object a line."""

    files: dict[str, str]
    """{train, valid or test: file}"""
    source: str
    """the field of the document"""
    target: str
    """the field of its summary or summaries"""
    scores: str | None = None
    """the field of a number for each sentence: how much it is like the summary"""
    denoising: Denoising | None = None


@dataclass(frozen=True)
class TestSet:
    """A real test set in Penn Treebank tokens; who scores needs its name alone."""

    __test__ = False  # none of pytest's

    name: str
    source: str = ""
    references: list[str] = field(default_factory=list)
    m2: str | None = None
    """its gold edits"""


@dataclass(frozen=True)
class UsualPairs:
    """Which training pairs are kept; see `sentence_pairs.is_usual`."""

    max_words: int
    ratio: float


@dataclass(frozen=True)
class Gpt2Files:
    """The files of GPT-2's subwords."""

    encoder_json: str
    vocab_bpe: str


@dataclass(frozen=True)
class Subwords:
    """Where the subwords come from: learned from the training text, a shipped model's, or GPT-2's."""

    symbols: int = 0
    """size of the vocabulary of learned ones, single characters included"""
    min_frequency: int = 2
    """a rarer merge is not learned"""
    shipped: str | None = None
    """the model's name, so that a training can start from it"""
    gpt2: Gpt2Files | None = None

    def __post_init__(self) -> None:
        if sum(map(bool, (self.symbols, self.shipped, self.gpt2))) != 1:
            raise AggdecError("one of symbols, shipped, gpt2 says where the subwords come from")


@dataclass(frozen=True)
class PrepareConfig:
    """One experiment's data. File names are relative to the folder of all data sets.

    The sentences come from the first that is given of `parallel`, `sentence_pairs`, `documents` and `clean_text`.
    """

    languages: Languages
    parallel: dict[str, PairFile | list[PairFile]] = field(default_factory=dict)
    """{split: its files}"""
    clean: UsualPairs | None = None
    """of the training pairs of `parallel`; None: all"""
    sentence_pairs: SentencePairs | None = None
    documents: Documents | None = None
    clean_text: list[CleanText] = field(default_factory=list)
    joined: Joined | None = None
    unusual_characters: UnusualCharacters | None = None
    corrupt: FileCorruption = field(default_factory=FileCorruption)
    """the errors that are made in clean text"""
    hold_out: dict[str, int] = field(default_factory=dict)
    """{split: number of sentences that are taken out of the training text for it}"""
    further_training_sets: list[str] = field(default_factory=list)
    test_sets: list[TestSet] = field(default_factory=list)

    tokenizer: str = "moses"
    """or `as_written`: the tokens that fairseq-interactive has under --tokenizer as_written"""
    tokenizer_language: str | dict[str, str] | None = None
    """whose Moses rules split running text, one for both sides or {side: language}; None: it is tokenised already"""
    bpe: Subwords | None = None
    """None: tokens as they are"""
    dictionary: str | None = None
    """one that is given; None: made of the training text"""
    min_occurrences: int | None = None
    """what training pairs have less often is unknown: the model sees the unknown token on both sides, and learns to
    copy it"""
    max_tokens: int | None = None
    """a training pair with more on a side is left out; None: none is"""
    max_source_tokens: int | None = None
    """a longer source is cut there"""

    data_sets: list[str] = field(default_factory=list)
    """those that are fetched first, by their names in configs/shared/data"""
    m2: dict[str, str] = field(default_factory=dict)
    """{valid or test: file of gold edits}, for scoring"""
    score: list[str] = field(default_factory=list)
    """the metrics of `aggdec score`"""
    folder: Path = Path()
    """where the file itself lies; it does not say so"""

    def __post_init__(self) -> None:
        if self.tokenizer not in ("moses", "as_written"):
            raise AggdecError(f"tokenizer: {self.tokenizer}: must be moses or as_written")

    @classmethod
    def read(cls, path: Path) -> PrepareConfig:
        """Reads a `prepare.yaml` that is to be prepared.

        Raises:
            AggdecError: it is not YAML, or an entry is unknown, missing, or of another form than expected.
        """
        config = _made(read_yaml(path, resolve=True), path)
        given = {*config.parallel, *config.hold_out, *(config.documents.files if config.documents else ())}
        if config.sentence_pairs or config.clean_text:
            given.add("train")
        if missing := [name for name in ("train", "valid", "test") if name not in given]:
            raise AggdecError(
                f"{path}: says nothing of {', '.join(missing)}: parallel, sentence_pairs, documents or clean_text is "
                f"missing, or an entry in it or in hold_out; {_ADVICE}"
            )
        return config

    @property
    def sides(self) -> tuple[str, str]:
        """Names of the source and target side, the suffixes of all files."""
        return self.languages.source, self.languages.target

    @property
    def training_sets(self) -> list[str]:
        """`train`, and `train1` where there are joined sentences: fairseq trains on both without being told.

        `further_training_sets` are those of other trainings: fairseq trains on one under `--train-subset NAME`.
        """
        return ["train", *(["train1"] if self.joined else []), *self.further_training_sets]

    @property
    def splits(self) -> list[str]:
        """Names of the splits and test sets, the training sets first."""
        return [*self.training_sets, "valid", "test", *(item.name for item in self.test_sets)]

    def language_of(self, side: str) -> str | None:
        """Whose Moses rules split a side's running text; references have the target's."""
        language = self.tokenizer_language
        return language.get(side, language.get(self.languages.target)) if isinstance(language, dict) else language

    def pair_files(self, split: str) -> Sequence[PairFile]:
        """What `parallel` says of a split."""
        entry = self.parallel[split]
        return entry if isinstance(entry, list) else [entry]


def read_config(path: Path) -> dict[str, Any]:
    """A `prepare.yaml` as plain dictionaries and lists, checked: for those who score.

    Raises:
        AggdecError: as `PrepareConfig.read`, but it may lack the data of a split.
    """
    content = read_yaml(path, resolve=True)
    if content.keys() - {"data_sets"}:  # of images there is nothing else to say
        _made(content, path)
    return content


def _made(content: Mapping[str, Any], path: Path) -> PrepareConfig:
    content = {**content, "folder": str(path.parent)}
    config: PrepareConfig = made_of(PrepareConfig, content, str(path), _ADVICE, complete=False)
    return config
