"""The sentences and fingerprints in a folder that fairseq-preprocess made, and writing such a folder."""

import hashlib
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary, indexed_dataset

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import file_sha256, folder_written_whole
from fairseq_aggdec.hub.settings import FILE
from fairseq_aggdec.tasks.data_folder import language_pair

_SEED = 1  # of the sentences in a sample

Tokens = np.ndarray
"""one sentence's dictionary indices, EOS included: one-dimensional"""


@dataclass(frozen=True)
class Side:
    """One language of a split."""

    prefix: Path
    """the path of its files without `.bin` and `.idx`"""
    sentences: Any
    """an indexed data set of fairseq"""

    def __len__(self) -> int:
        return len(self.sentences)

    def __getitem__(self, index: int) -> Tokens:
        tokens: Tokens = self.sentences[index].numpy()
        return tokens.copy()  # fairseq unmaps the file when the data set is deleted

    def __iter__(self) -> Iterator[Tokens]:
        return (self[index] for index in range(len(self)))

    @property
    def sizes(self) -> np.ndarray:
        """How many tokens each sentence has, EOS included."""
        return np.array(self.sentences.sizes)

    def fingerprint(self) -> str:
        """A SHA-256 over both files."""
        both = (
            file_sha256(Path(f"{self.prefix}.{suffix}")) for suffix in ("idx", "bin")
        )
        return hashlib.sha256("".join(both).encode()).hexdigest()


@dataclass(frozen=True)
class DataBin:
    """Binarised data of one language pair.

    Attributes:
        folder: the --destdir of fairseq-preprocess.
        source_lang, target_lang: the languages as in the names of the files.
    """

    folder: Path
    source_lang: str
    target_lang: str

    @classmethod
    def find(
        cls,
        folder: Path,
        source_lang: str | None = None,
        target_lang: str | None = None,
    ) -> "DataBin":
        """The data of a folder, with its languages by `language_pair`, which also says what is raised."""
        return cls(folder, *language_pair(folder, source_lang, target_lang))

    @property
    def pair(self) -> str:
        """The language pair as in the names of the files."""
        return f"{self.source_lang}-{self.target_lang}"

    @cached_property
    def source_dictionary(self) -> Dictionary:
        """The source's dictionary."""
        return Dictionary.load(str(self.folder / f"dict.{self.source_lang}.txt"))

    @cached_property
    def target_dictionary(self) -> Dictionary:
        """The target's dictionary."""
        return Dictionary.load(str(self.folder / f"dict.{self.target_lang}.txt"))

    def training_splits(self) -> list[str]:
        """The splits `train`, `train1`, `train2`, ... that there are.

        Raises:
            AggdecError: there are none.
        """
        names = {
            path.name.split(".")[0]
            for path in self.folder.glob(f"train*.{self.pair}.{self.source_lang}.idx")
        }
        splits = [name for name in names if re.fullmatch(r"train\d*", name)]
        if not splits:
            raise AggdecError(
                f"{self.folder}: has no training split (train.{self.pair}.{self.source_lang}.idx)"
            )
        return sorted(splits, key=lambda name: int(name.removeprefix("train") or 0))

    def source(self, split: str) -> Side:
        """The sources of a split.

        Raises:
            AggdecError: there is no such split.
        """
        return self._side(split, self.source_lang, self.source_dictionary)

    def target(self, split: str) -> Side:
        """The targets of a split.

        Raises:
            AggdecError: there is no such split, or it has more or fewer sources.
        """
        side = self._side(split, self.target_lang, self.target_dictionary)
        sources = len(self.source(split))
        if len(side) != sources:
            raise AggdecError(
                f"{side.prefix}: {len(side)} targets, but {sources} sources; binarise the split again"
            )
        return side

    def prefix(self, split: str, lang: str) -> Path:
        """The path of one side's files without `.bin` and `.idx`."""
        return self.folder / f"{split}.{self.pair}.{lang}"

    def fingerprint(self, split: str) -> dict[str, str]:
        """SHA-256 of a split's two sides and of both dictionaries."""
        return {
            "source": self.source(split).fingerprint(),
            "target": self.target(split).fingerprint(),
            "source dictionary": file_sha256(
                self.folder / f"dict.{self.source_lang}.txt"
            ),
            "target dictionary": file_sha256(
                self.folder / f"dict.{self.target_lang}.txt"
            ),
        }

    def write(
        self, split: str, sources: Iterable[Tokens], targets: Iterable[Tokens]
    ) -> None:
        """Write a split as fairseq-preprocess does, into a folder with both dictionaries."""
        for language, sentences, dictionary in (
            (self.source_lang, sources, self.source_dictionary),
            (self.target_lang, targets, self.target_dictionary),
        ):
            prefix = self.prefix(split, language)
            builder = indexed_dataset.make_builder(
                f"{prefix}.bin", "mmap", vocab_size=len(dictionary)
            )
            for sentence in sentences:
                builder.add_item(torch.from_numpy(sentence))
            builder.finalize(f"{prefix}.idx")

    def _side(self, split: str, lang: str, dictionary: Dictionary) -> Side:
        prefix = self.prefix(split, lang)
        # fairseq would say little about files that are missing, empty or cut short
        name = str(prefix)
        impl = (
            indexed_dataset.infer_dataset_impl(name)
            if Path(f"{name}.idx").is_file()
            else None
        )
        size = Path(f"{name}.bin").stat().st_size if impl == "mmap" else None
        if size == 0:
            raise AggdecError(f"{name}.bin: holds no sentences")
        sentences: Any = impl and indexed_dataset.make_dataset(
            name, impl, fix_lua_indexing=True, dictionary=dictionary
        )
        if not sentences:
            raise AggdecError(
                f"{name}.idx and .bin: not binarised data of fairseq; check the split, or give another data folder "
                "that has it and the same dictionaries (aggdec drafter: --data FOLDER)"
            )
        if (
            size is not None
            and size < sentences.sizes.sum() * sentences._index.dtype().itemsize
        ):
            raise AggdecError(
                f"{name}.bin: truncated: shorter than its .idx says; copy or binarise it again"
            )
        return Side(prefix, sentences)


def write_sample(folder: Path, data: DataBin, sentences: Mapping[str, int]) -> DataBin:
    """Write a part of a data folder, unless it is there: sentences drawn at random, always the same, in their order.

    Args:
        folder: the folder to make, which has its name only when it is complete.
        data: the original data.
        sentences: how many, by split; splits that are not named are left out.

    Raises:
        AggdecError: there is no such split, or its sides differ in length.
    """
    sample = DataBin(folder, data.source_lang, data.target_lang)
    if folder.is_dir():
        return sample
    with folder_written_whole(folder) as partial:
        written = DataBin(partial, data.source_lang, data.target_lang)
        for path in (*data.folder.glob("dict.*.txt"), *data.folder.glob(FILE)):
            shutil.copyfile(path, partial / path.name)
        for split, count in sentences.items():
            source = data.source(split)
            target = data.target(split)
            chosen = np.sort(
                np.random.RandomState(_SEED).permutation(len(source))[:count]
            )
            written.write(
                split,
                (source[int(index)] for index in chosen),
                (target[int(index)] for index in chosen),
            )
    return sample
