"""Documents and their summaries, from JSON lines: what a summarization experiment reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import Any

from fairseq_aggdec.data import clean_text
from fairseq_aggdec.errors import AggdecError


@dataclass(frozen=True)
class Document:
    """One line of the file.

    Attributes:
        sentences: those of the document, or the whole document as one.
        summaries: one or more, the first of them what a model is trained on.
        extract: the sentence that is most like the summary; None where the file does not say.
    """

    sentences: list[str]
    summaries: list[str]
    extract: str | None = None

    @property
    def text(self) -> str:
        """The whole document, one line of running text."""
        return " ".join(self.sentences)


def read_documents(
    lines: Iterable[str], name: str, source: str, target: str, scores: str | None = None
) -> Iterator[Document]:
    """Yields the documents of a file; those without text or without a summary are left out.

    Args:
        lines: JSON objects.
        name: what an error calls the file.
        source: the field of the document: its sentences, or one string.
        target: the field of its summary, or of a list of summaries.
        scores: the field of a list of numbers, one a sentence: how much each is like the summary; None: no extract.

    Raises:
        AggdecError: a line is no JSON object, or lacks a field.
    """
    for number, line in enumerate(lines, start=1):
        where = f"{name}, line {number}"
        try:
            record: Any = json.loads(line)
        except json.JSONDecodeError as error:
            raise AggdecError(f"{where}: no JSON ({error})") from None
        if not isinstance(record, dict):
            raise AggdecError(f"{where}: a JSON object is expected, with {source} and {target}")
        missing = [field for field in (source, target, scores) if field is not None and field not in record]
        if missing:
            raise AggdecError(f"{where}: has no field {', '.join(missing)}; it has {', '.join(record)}")
        sentences = [clean_text.normalise(sentence) for sentence in _strings(record[source], where, source)]
        summaries = [clean_text.normalise(summary) for summary in _strings(record[target], where, target)]
        summaries = [summary for summary in summaries if summary]
        if any(sentences) and summaries:
            extract = _best(sentences, record[scores], where, scores) if scores else None
            yield Document(list(filter(None, sentences)), summaries, extract)


def denoising_pairs(documents: Iterable[Document], max_words: int, deletions: float) -> Iterator[tuple[str, str]]:
    """Yields (source, target) pairs from which a small model learns to read and copy before it learns to summarize.

    Each sentence, and a passage of random length that begins with it, is to be restored from what is left when words
    are deleted at random: the token deletion of BART's pre-training (Lewis et al. 2020, §2.2). Every word of the source
    is one of the target, so that a batch teaches more than one of summaries. The same documents give the same pairs.

    Args:
        documents: those that are trained on.
        max_words: of a passage, which ends with a sentence; longer sentences are left out.
        deletions: the share of words that are deleted, in [0, 1); the source keeps one at least.
    """
    random = Random(1)
    for document in documents:
        lengths = [len(sentence.split()) for sentence in document.sentences]
        for first in range(len(lengths)):
            fitting = sum(total <= max_words for total in accumulate(lengths[first:]))
            if fitting:
                for sentences in {1, random.randint(1, fitting)}:
                    words = " ".join(document.sentences[first : first + sentences]).split()
                    left = [word for word in words if random.random() >= deletions]
                    yield " ".join(left or words[:1]), " ".join(words)


def _strings(value: Any, where: str, field: str) -> list[str]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(item, str) for item in values):
        raise AggdecError(f"{where}: {field} must be a string or a list of strings")
    return values


def _best(sentences: list[str], scores: Any, where: str, field: str) -> str | None:
    if not isinstance(scores, list) or len(scores) != len(sentences):
        raise AggdecError(f"{where}: {field} must have one number for each of the {len(sentences)} sentences")
    best = max(range(len(sentences)), key=lambda number: float(scores[number]), default=None)
    return None if best is None else sentences[best] or None
