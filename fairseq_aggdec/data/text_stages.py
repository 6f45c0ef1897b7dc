"""The first stages of data preparation: given data sets of several kinds to running text, `work/text/SPLIT.SIDE`."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

from tqdm import tqdm

from fairseq_aggdec.data import clean_text, ptb, sentence_pairs, splits
from fairseq_aggdec.data.corruption import line_seed
from fairseq_aggdec.data.documents import Document, denoising_pairs, read_documents
from fairseq_aggdec.data.pair_files import read_pairs, read_references
from fairseq_aggdec.data.references import reference_columns
from fairseq_aggdec.data.sentence_pairs import Pair
from fairseq_aggdec.data.text_files import read_lines, write_lines
from fairseq_aggdec.data.unusual import with_unusual
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.structured_files import read_yaml

logger = logging.getLogger(__name__)


_ENTRIES: dict[str, Any] = {
    **dict.fromkeys(("languages", "parallel", "sentence_pairs", "documents", "hold_out", "corrupt"), dict),
    **dict.fromkeys(("clean", "joined", "m2", "unusual_characters"), dict),
    **dict.fromkeys(("clean_text", "test_sets", "further_training_sets", "data_sets", "score"), list),
    **dict.fromkeys(("max_tokens", "max_source_tokens", "min_occurrences"), int),
    "bpe": dict | None,
    "dictionary": str,
    "tokenizer": str,
    "tokenizer_language": str | dict | None,
}
"""what a `prepare.yaml` may say, and in which form"""


def read_config(path: Path) -> dict[str, Any]:
    """Returns an experiment's `prepare.yaml` as plain dictionaries and lists.

    Raises:
        AggdecError: it is not YAML, or an entry is unknown, of another type than expected, or missing.
    """
    config = read_yaml(path, resolve=True)
    for name, value in config.items():
        if name not in _ENTRIES:
            raise AggdecError(f"{path}: unknown entry {name}; there are {', '.join(_ENTRIES)}")
        if not isinstance(value, _ENTRIES[name]):
            raise AggdecError(f"{path}: {name}: {value!r} is of another form than it should be; see configs/")
    if config.keys() <= {"data_sets"}:  # images: there is nothing to prepare
        return config
    if not {"source", "target"} <= config.get("languages", {}).keys():
        raise AggdecError(f"{path}: lacks languages: {{source: NAME, target: NAME}}, the suffixes of all files")
    return config


@dataclass
class TextStages:
    """One experiment's data preparation up to text, tokenised or not.

    Attributes:
        config: the parsed `prepare.yaml`.
        data: folder of the given data sets.
        work: folder for all outputs of the experiment; the binary data goes to `work/data-bin`.
        workers: number of processes.
    """

    config: dict[str, Any]
    data: Path
    work: Path
    workers: int = 1

    @property
    def languages(self) -> tuple[str, str]:
        """Names of the source and target side, the suffixes of all files."""
        return self.config["languages"]["source"], self.config["languages"]["target"]

    @property
    def splits(self) -> list[str]:
        """Names of the splits and test sets, the training sets first."""
        return [*self.training_sets, "valid", "test", *(item["name"] for item in self.config.get("test_sets", []))]

    @property
    def training_sets(self) -> list[str]:
        """`train`, and `train1` where there are joined sentences: fairseq trains on both without being told.

        `further_training_sets` are those of other trainings: fairseq trains on one under `--train-subset NAME`.
        """
        joined = ["train1"] if "joined" in self.config else []
        return ["train", *joined, *self.config.get("further_training_sets", [])]

    def write_text(self) -> None:
        """Runs those of the stages that the configuration asks for and that are not complete yet.

        Raises:
            AggdecError: a file is missing or damaged.
        """
        if "parallel" in self.config:
            self.copy_parallel()
            self.copy_test_sets()
        elif "sentence_pairs" in self.config:
            self.split_pairs()
        elif "documents" in self.config:
            self.copy_documents()
        else:
            self.clean()
            self.corrupt()
            self.copy_test_sets()

    def clean(self) -> None:
        """Writes the clean sentences of each split: `clean/{train,train1,valid,test}`."""
        if all((self.work / "clean" / name).exists() for name in self.training_sets):
            return
        seen: set[str] = set()
        known_words: set[str] = set()
        kept: list[tuple[str, int]] = []
        running: list[str] = []
        for item in self.config["clean_text"]:
            lines = tqdm(read_lines(self.data / item["file"], item.get("column")), desc=item["file"], unit=" lines")
            before = len(kept)
            for sentence in clean_text.clean_sentences(lines):
                if sentence in seen:
                    continue
                seen.add(sentence)
                if not item.get("modern_only"):
                    known_words |= clean_text.lower_case_words(sentence)
                elif not clean_text.is_modern(sentence, known_words, item.get("max_unknown_words", 0)):
                    continue
                kept.append((sentence, item.get("repeat", 1)))
                if item.get("running_text"):
                    running.append(sentence)
            logger.info("%s: %d sentences kept", item["file"], len(kept) - before)
        held_out = splits.hold_out((sentence for sentence, _ in kept), self.config["hold_out"])
        reserved = set(chain.from_iterable(held_out.values()))
        for name, sentences in held_out.items():
            write_lines(self.work / "clean" / name, sentences)
        if "joined" in self.config:
            in_order = [sentence for sentence in running if sentence not in reserved]
            joined = splits.join_neighbours(in_order, **self.config["joined"])
            write_lines(self.work / "clean/train1", self._with_unusual(joined))
        rounds = max(repeat for _, repeat in kept)
        train = (
            sentence
            for turn in range(rounds)
            for sentence, repeat in kept
            if turn < repeat and sentence not in reserved
        )
        if not (self.work / "clean/train").exists():
            write_lines(self.work / "clean/train", self._with_unusual(train))

    def _with_unusual(self, sentences: Iterable[str]) -> Iterator[str]:
        """The sentences, a share of them with characters that clean prose does not have, where that is asked for."""
        settings = self.config.get("unusual_characters", {"share": 0.0, "seed": 0})
        for number, sentence in enumerate(sentences, start=1):
            rng = Random(line_seed(settings["seed"], number))
            yield with_unusual(sentence, rng) if rng.random() < settings["share"] else sentence

    def corrupt(self) -> None:
        """Writes synthetic (erroneous, clean) pairs of each split to `text/`."""
        from fairseq_aggdec.cli import corrupt

        settings = self.config["corrupt"]
        for number, name in enumerate(("train", "valid", "test", *self.training_sets[1:])):
            if all((self.work / "text" / f"{name}.{side}").exists() for side in self.languages):
                continue
            (self.work / "text").mkdir(parents=True, exist_ok=True)
            partial = self.work / "text" / f"{name}.partial"
            arguments = [str(self.work / "clean" / name), str(partial), "--force"]  # a killed run may have left some
            arguments += ["--seed", str(settings["seed"] + number), "--workers", str(self.workers)]
            corrupt.main([*arguments, *map(str, settings.get("options", []))])
            for suffix, side in zip(("src", "tgt"), self.languages, strict=True):
                Path(f"{partial}.{suffix}").rename(self.work / "text" / f"{name}.{side}")

    def copy_test_sets(self) -> None:
        """Writes real test sets as running text to `text/`; the first reference stands in for the target."""
        for item in self.config.get("test_sets", []):
            files = {self.languages[0]: item["source"], self.languages[1]: item["references"][0]}
            files |= {f"ref{number}": reference for number, reference in enumerate(item["references"])}
            for suffix, file in files.items():
                output = self.work / "text" / f"{item['name']}.{suffix}"
                if not output.exists():
                    write_lines(output, map(ptb.detokenise, read_lines(self.data / file)))

    def copy_parallel(self) -> None:
        """Writes given sentence pairs to `text/`; with `clean`, of the training pairs those that `is_usual`.

        Several references of a split are `text/NAME.ref0` and so on. Splits that `hold_out` names are taken out
        of the training pairs, which then share no sentence with any other split.
        """
        given = self.config["parallel"]
        for name, entry in given.items():
            self._write_references(name, read_references(entry, self.data))
        sizes = self.config.get("hold_out", {})
        outputs = {
            name: [self.work / "text" / f"{name}.{side}" for side in self.languages] for name in (*given, *sizes)
        }
        missing = [name for name, files in outputs.items() if not all(file.exists() for file in files)]
        if not missing:
            return
        parts = {name: self._given_pairs(name) for name in given if sizes or name in missing}
        if sizes:
            others = chain.from_iterable(parts[name] for name in given if name != "train")
            parts |= sentence_pairs.split(sentence_pairs.without(parts["train"], others), sizes)
        for name in missing:
            self._write_pairs(name, parts[name])

    def _given_pairs(self, name: str) -> list[Pair]:
        """The pairs of a split as `parallel` names it."""
        entry = self.config["parallel"][name]
        pairs = list(tqdm(read_pairs(entry, self.data), desc=f"copy {name}", unit=" pairs"))
        if not pairs:
            raise AggdecError(f"{name}: the files that `parallel` names hold no pairs")
        if name in self.training_sets and "clean" in self.config:
            before = len(pairs)
            pairs = [pair for pair in pairs if sentence_pairs.is_usual(pair, **self.config["clean"])]
            logger.info("%s: %d of %d pairs kept", name, len(pairs), before)
        return pairs

    def split_pairs(self) -> None:
        """Writes running text of the splits of one parallel corpus to `text/`."""
        settings = self.config["sentence_pairs"]
        outputs = {name: [self.work / "text" / f"{name}.{side}" for side in self.languages] for name in self.splits}
        if all(output.exists() for pair in outputs.values() for output in pair):
            return
        file = self.data / settings["file"]
        columns = [read_lines(file, column) for column in settings["columns"]]
        pairs = list(sentence_pairs.clean_pairs(zip(*columns, strict=True)))
        parts = sentence_pairs.split(
            pairs, self.config["hold_out"], settings.get("long_words", 0), settings.get("long_share", 0.0)
        )
        if "joined_pairs" in settings:
            parts["train"] += sentence_pairs.join_pairs(parts["train"], **settings["joined_pairs"])
        for name, part in parts.items():
            self._write_pairs(name, part)

    def copy_documents(self) -> None:
        """Writes documents and summaries to `text/`: the first summary is the target, all together are references."""
        settings = self.config["documents"]
        fields = (settings["source"], settings["target"], settings.get("scores"))
        _, target = self.languages
        for name in ("train", "valid", "test"):
            file = self.data / settings["files"][name]
            if (self.work / "text" / f"{name}.{target}").exists():
                continue
            documents = list(read_documents(read_lines(file), str(file), *fields))
            if not documents:
                raise AggdecError(f"{file}: has no document with a summary")
            if name == "train":
                self._write_reading_pairs(documents, settings)
            summaries = reference_columns([document.summaries for document in documents])
            if len(summaries) > 1 and name != "train":
                self._write_references(name, summaries)
            self._write_pairs(name, [(document.text, document.summaries[0]) for document in documents])

    def _write_references(self, name: str, references: Sequence[Iterable[str]]) -> None:
        for number, lines in enumerate(references):
            if not (file := self.work / "text" / f"{name}.ref{number}").exists():
                write_lines(file, lines)

    def _write_reading_pairs(self, documents: Sequence[Document], settings: Mapping[str, Any]) -> None:
        """Writes the further training sets of documents: `pretrain`, noisy text to restore, and `train1`, extracts."""
        if "denoising" in settings:
            self._write_pairs("pretrain", list(denoising_pairs(documents, **settings["denoising"])))
        if "scores" in settings:
            self._write_pairs(
                "train1", [(document.text, document.extract) for document in documents if document.extract]
            )

    def _write_pairs(self, name: str, pairs: Sequence[Pair], folder: str = "text") -> None:
        """Writes one split, the source side first."""
        for index, side in enumerate(self.languages):
            write_lines(self.work / folder / f"{name}.{side}", (pair[index] for pair in pairs))
