"""Documents and their summaries, and texts to restore made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from experiments.text_files import read_json_lines, strings
from experiments.words import normalise

from fairseq_aggdec.errors import AggdecError

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


def read_documents(lines: Iterable[str], name: str) -> Iterator[Document]:
    """Yields the documents of a file of SciTLDR; those without text or without a summary are left out.

    Args:
        lines: JSON objects: `source`, the document's sentences, `target`, its summaries, and `source_labels`, a number
            for each sentence, its similarity to the summary.
        name: the name of the file, for error messages.

    Raises:
        AggdecError: a line is no JSON object, or lacks a field.
    """
    for where, record in read_json_lines(
        lines, name, "source", "target", "source_labels"
    ):
        sentences = [
            normalise(sentence) for sentence in strings(record["source"], where)
        ]
        summaries = list(filter(None, map(normalise, strings(record["target"], where))))
        if any(sentences) and summaries:
            extract = _best(sentences, record["source_labels"], where)
            yield Document(list(filter(None, sentences)), summaries, extract)


def denoising_pairs(
    documents: Iterable[Document], max_words: int, deletions: float
) -> Iterator[tuple[str, str]]:
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
        words = document.text.split()
        texts = [sentence.split() for sentence in document.sentences]
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


def _best(sentences: list[str], scores: Any, where: str) -> str | None:
    """The sentence with the best score; None where it is empty."""
    if (
        not isinstance(scores, list)
        or len(scores) != len(sentences)
        or not all(isinstance(score, int | float) for score in scores)
    ):
        raise AggdecError(
            f"{where}: source_labels must have one number for each of the {len(sentences)} sentences"
        )
    return sentences[max(range(len(sentences)), key=scores.__getitem__)] or None
