"""The content of an experiment's `prepare.yaml`: where its sentences come from, and what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairseq_aggdec.data.corruption_files import FileCorruption
from fairseq_aggdec.data.entry_checks import check_columns, check_names, check_range
from fairseq_aggdec.data.pair_files import PairFile
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.structured_files import made_of, read_yaml

_ADVICE = "compare with the files in configs/"


@dataclass(frozen=True)
class Languages:
    """The names of the two sides, which are the suffixes of all files."""

    source: str
    target: str

    def __post_init__(self) -> None:
        check_names([self.source, self.target])


@dataclass(frozen=True)
class CleanText:
    """A file of clean sentences, one in a line."""

    file: str
    column: int | None = None
    """the column, if the file is a table with tabs; None: the whole line"""
    json_field: str | None = None
    """the field with the sentences, if each line is a JSON object; None: each is a sentence"""
    tokenised: bool = False
    """whether marks stand apart, as in Penn Treebank tokens; they are joined with their words"""
    repeat: int = 1
    """how often each sentence is in the training text"""
    running_text: bool = False
    """whether neighbouring lines belong together, so that they may be joined"""
    modern_only: bool = False
    """whether to leave out sentences that do not read modern, by the words of the files before"""
    max_unknown_words: int = 0
    """the most unknown words in a sentence of a `modern_only` file"""

    def __post_init__(self) -> None:
        check_range(vars(self), ["repeat"], 1)
        check_range(vars(self), ["column", "max_unknown_words"], 0)


@dataclass(frozen=True)
class Joined:
    """Long training examples of neighbouring sentences; see `splits.join_neighbours`."""

    lines: int
    min_words: int
    max_words: int

    def __post_init__(self) -> None:
        check_range(vars(self), ["lines", "min_words"], 1)
        check_range(vars(self), ["max_words"], self.min_words)


@dataclass(frozen=True)
class UnusualCharacters:
    """Unusual characters that are put into both sides of training sentences; see `unusual`."""

    share: float
    """the share of training sentences that get some"""
    seed: int

    def __post_init__(self) -> None:
        check_range(vars(self), ["share"], 0, 1)


@dataclass(frozen=True)
class JoinedPairs:
    """Long training pairs made of short ones; see `sentence_pairs.join_pairs`."""

    lines: int
    max_words: int

    def __post_init__(self) -> None:
        check_range(vars(self), ["lines", "max_words"], 1)


@dataclass(frozen=True)
class SentencePairs:
    """A parallel corpus in one table with tabs, to be split into training and held-out pairs."""

    file: str
    columns: list[int]
    """the columns of source and target, counted from 0"""
    long_words: int = 0
    """the number of words from which on a source counts as long; 0: none does"""
    long_share: float = 0.0
    """the share of long sources in each held-out set"""
    joined_pairs: JoinedPairs | None = None

    def __post_init__(self) -> None:
        check_columns(self.columns)
        check_range(vars(self), ["long_words"], 0)
        check_range(vars(self), ["long_share"], 0, 1)


@dataclass(frozen=True)
class Denoising:
    """Noisy texts to restore; see `documents.denoising_pairs`."""

    max_words: int
    deletions: float

    def __post_init__(self) -> None:
        check_range(vars(self), ["max_words"], 1)
        check_range(vars(self), ["deletions"], 0, 1)


@dataclass(frozen=True)
class Documents:
    """Documents and their summaries, one JSON object in a line."""

    files: dict[str, str]
    """{train, valid and test: file}"""
    source: str
    """the field with the document"""
    target: str
    """the field with its summary or summaries"""
    scores: str | None = None
    """the field with a number for each sentence, its similarity to the summary"""
    denoising: Denoising | None = None


@dataclass(frozen=True)
class TestSet:
    """A real test set, in Penn Treebank tokens unless all text is tokenised; for scoring only the name is needed."""

    __test__ = False  # no test class, for pytest

    name: str
    source: str = ""
    references: list[str] = field(default_factory=list)
    """none where they are not published"""
    m2: str | None = None
    """the file of its gold edits"""


@dataclass(frozen=True)
class UsualPairs:
    """Which training pairs are kept; see `sentence_pairs.is_usual`."""

    max_words: int
    ratio: float

    def __post_init__(self) -> None:
        check_range(vars(self), ["max_words", "ratio"], 1)


@dataclass(frozen=True)
class Gpt2Files:
    """The files of GPT-2's subwords."""

    encoder_json: str
    vocab_bpe: str


@dataclass(frozen=True)
class Subwords:
    """Where the subwords come from: the training text, a shipped model, or GPT-2."""

    symbols: int = 0
    """size of the learned vocabulary, single characters included"""
    min_frequency: int = 2
    """the least frequency of a learned merge"""
    shipped: str | None = None
    """the shipped model's name; a training can then start from that model"""
    gpt2: Gpt2Files | None = None

    def __post_init__(self) -> None:
        check_range(vars(self), ["symbols"], 0)
        check_range(vars(self), ["min_frequency"], 1)
        if sum(map(bool, (self.symbols, self.shipped, self.gpt2))) != 1:
            raise AggdecError("one of symbols, shipped, gpt2 says where the subwords come from")


@dataclass(frozen=True)
class PrepareConfig:
    """The data of one experiment. Names of files are relative to the folder of all data sets.

    The sentences come from `parallel`, `sentence_pairs`, `documents` or `clean_text`, whichever is given.
    """

    languages: Languages
    parallel: dict[str, PairFile | list[PairFile]] = field(default_factory=dict)
    """{split: its entry or entries}"""
    clean: UsualPairs | None = None
    """which training pairs of `parallel` are kept; None: all"""
    sentence_pairs: SentencePairs | None = None
    documents: Documents | None = None
    clean_text: list[CleanText] = field(default_factory=list)
    joined: Joined | None = None
    unusual_characters: UnusualCharacters | None = None
    corrupt: FileCorruption = field(default_factory=FileCorruption)
    """the errors that are made in clean text"""
    hold_out: dict[str, int] = field(default_factory=dict)
    """{split: number of sentences that it takes from the training text}"""
    further_training_sets: list[str] = field(default_factory=list)
    test_sets: list[TestSet] = field(default_factory=list)

    tokenizer: str = "moses"
    """`moses`, or `as_written` for fairseq-interactive's --tokenizer as_written"""
    tokenizer_language: str | dict[str, str] | None = None
    """the language of Moses' rules, for both sides or as {side: language}; None: the text is already tokenised"""
    bpe: Subwords | None = None
    """None: no subwords"""
    dictionary: str | None = None
    """the file of a given dictionary; None: it is made of the training text"""
    min_occurrences: int | None = None
    """a symbol that training pairs have less often becomes the unknown token on both sides, which the model learns to
    copy"""
    max_tokens: int | None = None
    """the most tokens on each side of a training pair, others are left out; None: any number"""
    max_source_tokens: int | None = None
    """the number of tokens at which a source is cut; None: none is cut"""

    data_sets: list[str] = field(default_factory=list)
    """data sets to download first, by their names in configs/shared/data"""
    m2: dict[str, str] = field(default_factory=dict)
    """{valid or test: file of gold edits}, for scoring"""
    score: list[str] = field(default_factory=list)
    """the metrics of `aggdec score`"""
    folder: Path = Path()
    """the folder of the `prepare.yaml`, which is no entry in it"""

    def __post_init__(self) -> None:
        if self.tokenizer not in ("moses", "as_written"):
            raise AggdecError(f"tokenizer: {self.tokenizer}: must be moses or as_written")
        if self.tokenizer == "as_written" and not {self.language_of(side) for side in self.sides} <= {None, "en"}:
            raise AggdecError(f"tokenizer: as_written: is for English; tokenizer_language is {self.tokenizer_language}")
        check_range(vars(self), ["min_occurrences", "max_tokens", "max_source_tokens"], 1)
        sizes = {f"hold_out: {name}": size for name, size in self.hold_out.items()}
        check_range(sizes, sizes, 1)
        kinds = [name for name in ("parallel", "sentence_pairs", "documents", "clean_text") if getattr(self, name)]
        if len(kinds) > 1:
            raise AggdecError(f"{' and '.join(kinds)}: the sentences come from one of them; leave out the others")
        given = ["train", *self._given_splits]
        for name in self.hold_out:
            if name in given:
                raise AggdecError(f"hold_out: {name}: has sentences of its own; leave it out here or there")
        # text is written for these, too, and must not be taken for a test set's
        others = dict.fromkeys(name for name in (*given, *self.hold_out) if name not in self._own_splits)
        check_names([*self.splits, *others])

    @classmethod
    def read(cls, path: Path, to_prepare: bool = True) -> PrepareConfig:
        """Reads a `prepare.yaml`.

        Args:
            path: the file.
            to_prepare: whether it must name the data of every split and test set, which scoring does not need.

        Raises:
            AggdecError: it is not YAML, an entry is unknown, missing, of another form or without sense, or nothing
                makes a split.
        """
        content = read_yaml(path, resolve=True)
        if "folder" in content:
            raise AggdecError(f"{path}: unknown entry (folder); {_ADVICE}")
        content["folder"] = str(path.parent)
        config: PrepareConfig = made_of(PrepareConfig, content, str(path), _ADVICE, complete=False)
        if to_prepare:
            made, advice = config._made_splits()
            if missing := [name for name in config.splits if name not in made]:
                raise AggdecError(f"{path}: says nothing of {', '.join(missing)}: {advice}; {_ADVICE}")
            if without := [item.name for item in config.test_sets if not item.source]:
                raise AggdecError(f"{path}: test_sets: {', '.join(without)}: the source is missing; {_ADVICE}")
        return config

    @property
    def _given_splits(self) -> list[str]:
        """The splits with sentences of their own, which are not taken from the training text."""
        if self.documents:
            named = [name for name in ("train", "valid", "test") if name in self.documents.files]
            further = {"pretrain": self.documents.denoising, "train1": self.documents.scores}
            return [*named, *(name for name, settings in further.items() if settings)]
        if self.clean_text:
            return ["train", *(["train1"] if self.joined else [])]
        return ["train"] if self.sentence_pairs else list(self.parallel)

    def _made_splits(self) -> tuple[set[str], str]:
        """The names of the splits and test sets whose text is made, and what to do where one is missing."""
        given, tests = self._given_splits, [item.name for item in self.test_sets]
        if self.parallel:
            return {*given, *self.hold_out, *tests}, "give it in parallel or hold_out"
        if self.sentence_pairs:
            return {*given, *self.hold_out}, "give it in hold_out; sentence_pairs has no test_sets"
        if self.documents:
            advice = "in documents, give train, valid, test in files, denoising for pretrain, scores for train1"
            return {*given}, advice
        if self.clean_text:
            return {*given, *self.hold_out, *tests}, "give it in hold_out"
        return set(), "parallel, sentence_pairs, documents or clean_text is missing"

    @property
    def sides(self) -> tuple[str, str]:
        """The names of the source and the target side, which are the suffixes of all files."""
        return self.languages.source, self.languages.target

    @property
    def training_sets(self) -> list[str]:
        """`train`, `train1` where there are joined sentences, and `further_training_sets`.

        fairseq trains on `train` and `train1` by default, and on another training set under `--train-subset NAME`.
        """
        return ["train", *(["train1"] if self.joined else []), *self.further_training_sets]

    @property
    def splits(self) -> list[str]:
        """The names of all splits and test sets, the training sets first."""
        return [*self._own_splits, *(item.name for item in self.test_sets)]

    @property
    def _own_splits(self) -> list[str]:
        return [*self.training_sets, "valid", "test"]

    def language_of(self, side: str) -> str | None:
        """The language of Moses' rules for a side; a reference has the target's."""
        language = self.tokenizer_language
        return language.get(side, language.get(self.languages.target)) if isinstance(language, dict) else language

    def pair_files(self, split: str) -> Sequence[PairFile]:
        """A split's entries in `parallel`."""
        entry = self.parallel[split]
        return entry if isinstance(entry, list) else [entry]
