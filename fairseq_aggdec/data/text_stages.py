"""The first stages of data preparation: from data sets of several kinds to running text, `work/text/SPLIT.SIDE`.

A stage is a function of the configuration, the folder of the data sets (`data`) and the experiment's folder (`work`).
It does nothing where its files exist.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from random import Random

from tqdm import tqdm

from fairseq_aggdec.data import clean_text, ptb, sentence_pairs, splits
from fairseq_aggdec.data.corruption import line_seed
from fairseq_aggdec.data.corruption_files import corrupt_file
from fairseq_aggdec.data.documents import Document, denoising_pairs, read_documents, read_sentences
from fairseq_aggdec.data.pair_files import read_pairs, read_references
from fairseq_aggdec.data.prepare_config import CleanText, Documents, PrepareConfig, UnusualCharacters
from fairseq_aggdec.data.references import reference_columns
from fairseq_aggdec.data.sentence_pairs import Pair
from fairseq_aggdec.data.text_files import read_lines, write_lines
from fairseq_aggdec.data.unusual import with_unusual
from fairseq_aggdec.errors import AggdecError

logger = logging.getLogger(__name__)


def write_text(config: PrepareConfig, data: Path, work: Path, workers: int = 1) -> None:
    """Runs the stages that the configuration asks for.

    Raises:
        AggdecError: a file is missing or damaged.
    """
    if config.parallel:
        copy_parallel(config, data, work)
        copy_test_sets(config, data, work)
    elif config.sentence_pairs:
        split_pairs(config, data, work)
    elif config.documents:
        copy_documents(config, data, work)
    else:
        clean(config, data, work)
        corrupt(config, data, work, workers)
        copy_test_sets(config, data, work)


def clean(config: PrepareConfig, data: Path, work: Path) -> None:
    """Writes the clean sentences of each split: `clean/{train,train1,valid,test}`."""
    if all((work / "clean" / name).exists() for name in config.training_sets):
        return
    seen: set[str] = set()
    known_words: set[str] = set()
    kept: list[tuple[str, int]] = []
    running: list[str] = []
    for item in config.clean_text:
        before = len(kept)
        for sentence in clean_text.clean_sentences(_raw_sentences(item, data / item.file)):
            if sentence in seen:
                continue
            seen.add(sentence)
            if not item.modern_only:
                known_words |= clean_text.lower_case_words(sentence)
            elif not clean_text.is_modern(sentence, known_words, item.max_unknown_words):
                continue
            kept.append((sentence, item.repeat))
            if item.running_text:
                running.append(sentence)
        logger.info("%s: %d sentences kept", item.file, len(kept) - before)
    held_out = splits.hold_out((sentence for sentence, _ in kept), config.hold_out)
    reserved = set(chain.from_iterable(held_out.values()))
    for name, sentences in held_out.items():
        write_lines(work / "clean" / name, sentences)
    if config.joined:
        in_order = [sentence for sentence in running if sentence not in reserved]
        joined = splits.join_neighbours(in_order, **vars(config.joined))
        write_lines(work / "clean/train1", _with_unusual(joined, config.unusual_characters))
    rounds = max(repeat for _, repeat in kept)
    train = (
        sentence for turn in range(rounds) for sentence, repeat in kept if turn < repeat and sentence not in reserved
    )
    if not (work / "clean/train").exists():
        write_lines(work / "clean/train", _with_unusual(train, config.unusual_characters))


def _raw_sentences(item: CleanText, file: Path) -> Iterator[str]:
    """The sentences of a file of clean text, not normalised yet."""
    sentences: Iterator[str] = tqdm(read_lines(file, item.column), desc=item.file, unit=" lines")
    if item.json_field is not None:
        sentences = read_sentences(sentences, str(file), item.json_field)
    return map(ptb.detokenise, sentences) if item.tokenised else sentences


def _with_unusual(sentences: Iterable[str], settings: UnusualCharacters | None) -> Iterator[str]:
    """The sentences; where settings are given, a share of them with unusual characters."""
    if settings is None:
        yield from sentences
        return
    for number, sentence in enumerate(sentences, start=1):
        rng = Random(line_seed(settings.seed, number))
        yield with_unusual(sentence, rng) if rng.random() < settings.share else sentence


def corrupt(config: PrepareConfig, data: Path, work: Path, workers: int = 1) -> None:
    """Writes synthetic (erroneous, clean) pairs of each split to `text/`."""
    vocab = config.corrupt.vocab and data / config.corrupt.vocab
    for number, name in enumerate(("train", "valid", "test", *config.training_sets[1:])):
        source, target = (work / "text" / f"{name}.{side}" for side in config.sides)
        if not (source.exists() and target.exists()):
            errors = replace(config.corrupt, seed=config.corrupt.seed + number, vocab=vocab)
            made = corrupt_file(work / "clean" / name, source, target, errors, workers)
            logger.info("%s: %d pairs, %d errors", name, made.pairs, made.edits.total())


def copy_test_sets(config: PrepareConfig, data: Path, work: Path) -> None:
    """Writes real test sets to `text/`, as running text unless all text is tokenised already.

    The targets of a set are its first references; without references, its sources.
    """
    for item in config.test_sets:
        files = {config.languages.source: item.source, config.languages.target: [*item.references, item.source][0]}
        files |= {f"ref{number}": reference for number, reference in enumerate(item.references)}
        for suffix, file in files.items():
            output = work / "text" / f"{item.name}.{suffix}"
            if not output.exists():
                lines = read_lines(data / file)
                write_lines(output, map(ptb.detokenise, lines) if config.tokenizer_language else lines)


def copy_parallel(config: PrepareConfig, data: Path, work: Path) -> None:
    """Writes given sentence pairs to `text/`; with `clean`, only the training pairs for which `is_usual` is true.

    Several references of a split are `text/NAME.ref0` and so on. The splits in `hold_out` are taken from the training
    pairs, which then have no sentence in common with any other split.
    """
    for name in config.parallel:
        _write_references(work, name, read_references(config.pair_files(name), data))
    names = dict.fromkeys((*config.parallel, *config.hold_out))
    missing = [name for name in names if not _has_text(config, work, name)]
    if not missing:
        return
    parts = {name: _given_pairs(config, data, name) for name in config.parallel if config.hold_out or name in missing}
    if config.hold_out:
        others = chain.from_iterable(part for name, part in parts.items() if name != "train")
        parts |= sentence_pairs.split(sentence_pairs.without(parts["train"], others), config.hold_out)
    for name in missing:
        write_pairs(config, work / "text", name, parts[name])


def _given_pairs(config: PrepareConfig, data: Path, name: str) -> list[Pair]:
    """The pairs of a split in `parallel`."""
    given = read_pairs(config.pair_files(name), data, config.folder)
    pairs = list(tqdm(given, desc=f"copy {name}", unit=" pairs"))
    if not pairs:
        raise AggdecError(f"{name}: the files that `parallel` names hold no pairs")
    if name in config.training_sets and config.clean:
        before = len(pairs)
        pairs = [pair for pair in pairs if sentence_pairs.is_usual(pair, **vars(config.clean))]
        logger.info("%s: %d of %d pairs kept", name, len(pairs), before)
    return pairs


def split_pairs(config: PrepareConfig, data: Path, work: Path) -> None:
    """Splits one parallel corpus, and writes its running text to `text/`."""
    if all(_has_text(config, work, name) for name in config.splits):
        return
    settings = config.sentence_pairs
    assert settings is not None
    columns = [read_lines(data / settings.file, column) for column in settings.columns]
    pairs = list(sentence_pairs.clean_pairs(zip(*columns, strict=True)))
    parts = sentence_pairs.split(pairs, config.hold_out, settings.long_words, settings.long_share)
    if settings.joined_pairs:
        parts["train"] += sentence_pairs.join_pairs(parts["train"], **vars(settings.joined_pairs))
    for name, part in parts.items():
        write_pairs(config, work / "text", name, part)


def copy_documents(config: PrepareConfig, data: Path, work: Path) -> None:
    """Writes documents and summaries to `text/`: the first summary is the target, all summaries are references.

    Further training sets are `pretrain`, noisy text to restore, and `train1`, extracts.
    """
    settings = config.documents
    assert settings is not None
    for name in ("train", "valid", "test"):
        file = data / settings.files[name]
        if (work / "text" / f"{name}.{config.languages.target}").exists():
            continue
        lines = read_lines(file)
        documents = list(read_documents(lines, str(file), settings.source, settings.target, settings.scores))
        if not documents:
            raise AggdecError(f"{file}: has no document with a summary")
        if name == "train":
            for further, pairs in _further_pairs(documents, settings).items():
                write_pairs(config, work / "text", further, pairs)
        summaries = reference_columns([document.summaries for document in documents])
        if len(summaries) > 1 and name != "train":
            _write_references(work, name, summaries)
        pairs = [(document.text, document.summaries[0]) for document in documents]
        write_pairs(config, work / "text", name, pairs)


def _further_pairs(documents: Sequence[Document], settings: Documents) -> Mapping[str, list[Pair]]:
    """{further training set: its pairs}, made of the documents to train on."""
    pairs: dict[str, list[Pair]] = {}
    if settings.denoising:
        pairs["pretrain"] = list(denoising_pairs(documents, **vars(settings.denoising)))
    if settings.scores:
        pairs["train1"] = [(document.text, document.extract) for document in documents if document.extract]
    return pairs


def _has_text(config: PrepareConfig, work: Path, name: str) -> bool:
    return all((work / "text" / f"{name}.{side}").exists() for side in config.sides)


def _write_references(work: Path, name: str, references: Sequence[Iterable[str]]) -> None:
    for number, lines in enumerate(references):
        if not (file := work / "text" / f"{name}.ref{number}").exists():
            write_lines(file, lines)


def write_pairs(config: PrepareConfig, folder: Path, name: str, pairs: Sequence[Pair]) -> None:
    """Writes one split to `folder/NAME.SIDE`, the source side first."""
    for index, side in enumerate(config.sides):
        write_lines(folder / f"{name}.{side}", (pair[index] for pair in pairs))
