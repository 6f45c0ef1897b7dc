"""Documents and their summaries for summarization, read from JSON lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from fairseq_aggdec.data import clean_text
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.structured_files import parse_json

_PIECE = (4, 12)
"""the least and the greatest number of words in a short text to restore"""


@dataclass(frozen=True)
class Document:
    """A document, which is one line of the file.

    Attributes:
        sentences: its sentences, or the whole document as one.
        summaries: one or more summaries; models are trained on the first.
        extract: the sentence that is most similar to the summary; None where the file does not say.
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
        name: the name of the file, for error messages.
        source: the field with the document: a list of its sentences, or one string.
        target: the field with its summary, or with a list of summaries.
        scores: the field with a number for each sentence, its similarity to the summary; None: there are no extracts.

    Raises:
        AggdecError: a line is no JSON object, or lacks a field.
    """
    for where, record in _records(lines, name, source, target, *([scores] if scores else [])):
        sentences = [clean_text.normalise(sentence) for sentence in _strings(record[source], where, source)]
        summaries = [clean_text.normalise(summary) for summary in _strings(record[target], where, target)]
        summaries = [summary for summary in summaries if summary]
        if any(sentences) and summaries:
            extract = _best(sentences, record[scores], where, scores) if scores else None
            yield Document(list(filter(None, sentences)), summaries, extract)


def read_sentences(lines: Iterable[str], name: str, field: str) -> Iterator[str]:
    """Yields the sentences of a file of JSON objects, as they stand there: all in a field, a list or one string.

    Raises:
        AggdecError: a line is no JSON object, or lacks the field.
    """
    for where, record in _records(lines, name, field):
        yield from _strings(record[field], where, field)


def denoising_pairs(documents: Iterable[Document], max_words: int, deletions: float) -> Iterator[tuple[str, str]]:
    """Yields (source, target) pairs from which a small model learns to read and copy before it learns to summarize.

    The source is a text from which words were deleted at random, the target the whole text: the token deletion of
    BART's pre-training (Lewis et al. 2020, §2.2). Texts are pieces of a few words, sentences, and one passage of each
    document, since copying is learnt from short texts first. The same documents give the same pairs.

    Args:
        documents: the documents to train on.
        max_words: the most words of a text; a longer one is left out.
        deletions: the share of words that are deleted, from 0 to 1; the source keeps at least one word.
    """
    random = Random(1)
    for document in documents:
        words, texts = document.text.split(), [sentence.split() for sentence in document.sentences]
        while words:
            length = random.randint(*_PIECE)
            texts.append(words[:length])
            words = words[length:]
        first = random.randrange(len(document.sentences))
        last = random.randint(first, len(document.sentences) - 1)
        texts.append(" ".join(document.sentences[first : last + 1]).split())
        for text in texts:
            if len(text) <= max_words:
                left = [word for word in text if random.random() >= deletions]
                yield " ".join(left or text[:1]), " ".join(text)


def _records(lines: Iterable[str], name: str, *fields: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields each line's place, for error messages, and the JSON object in it, which has these fields."""
    for number, line in enumerate(lines, start=1):
        where = f"{name}, line {number}"
        record = parse_json(line, where, "mend or leave out the line")
        if not isinstance(record, dict):
            raise AggdecError(f"{where}: a JSON object is expected, with {' and '.join(fields)}")
        missing = [field for field in fields if field not in record]
        if missing:
            raise AggdecError(f"{where}: has no field {', '.join(missing)}; it has {', '.join(record)}")
        yield where, record


def _strings(value: Any, where: str, field: str) -> list[str]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(item, str) for item in values):
        raise AggdecError(f"{where}: {field} must be a string or a list of strings")
    return values


def _best(sentences: list[str], scores: Any, where: str, field: str) -> str | None:
    """The sentence with the best score; None where it is empty."""
    if (
        not isinstance(scores, list)
        or len(scores) != len(sentences)
        or not all(isinstance(score, int | float) for score in scores)
    ):
        raise AggdecError(f"{where}: {field} must have one number for each of the {len(sentences)} sentences")
    return sentences[max(range(len(sentences)), key=scores.__getitem__)] or None
