"""Precision, recall and F of corrections against the gold edits of an M2 file: the M2 scorer in Python 3.

Dahlmeier and Ng 2012, "Better Evaluation for Grammatical Error Correction"; F0.5 and the choice of the annotator as in
the CoNLL-2014 shared task (Ng et al. 2014). It is the metric of papers/000 Tables 1-4 and of papers/002. The counts
are meant to equal those of the official scorer (see `maxmatch`), but case and whitespace cannot be ignored.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tqdm import tqdm

from fairseq_aggdec.lab.score.edit_lattice import edit_lattice
from fairseq_aggdec.lab.score.m2_file import M2Sentence
from fairseq_aggdec.lab.score.maxmatch import best_edits, count_correct

_WEIGHT = 0.5**2  # of recall in F0.5: beta squared


@dataclass(frozen=True)
class M2Counts:
    """How many edits there are in a sentence or a corpus."""

    correct: int = 0
    proposed: int = 0
    gold: int = 0

    def __add__(self, other: "M2Counts") -> "M2Counts":
        return M2Counts(
            self.correct + other.correct,
            self.proposed + other.proposed,
            self.gold + other.gold,
        )

    @property
    def precision(self) -> float:
        """Share of proposed edits that are correct; 1 if none is proposed."""
        return self.correct / self.proposed if self.proposed else 1.0

    @property
    def recall(self) -> float:
        """Share of gold edits that are proposed; 1 if there are none."""
        return self.correct / self.gold if self.gold else 1.0

    @property
    def f(self) -> float:
        """F0.5: the weighted harmonic mean of precision and recall, which favours precision."""
        below = _WEIGHT * self.precision + self.recall
        return (1 + _WEIGHT) * self.precision * self.recall / below if below else 0.0

    @property
    def rank(self) -> tuple[float, int, float]:
        """Orders annotators: by F, which unlike `f` is 1 if there are neither gold nor proposed edits, then counts."""
        below = _WEIGHT * self.gold + self.proposed
        return (
            (1 + _WEIGHT) * self.correct / below if below else 1.0,
            self.correct,
            -below,
        )


def corpus_m2(
    outputs: Sequence[Sequence[str]], sentences: Sequence[M2Sentence]
) -> M2Counts:
    """Count the edits of a corpus, with a progress bar on a terminal.

    For each sentence, the annotator counts with whom the corpus up to there has the highest F. `outputs` are tokenised
    as in the M2 file.
    """
    total = M2Counts()
    pairs = zip(outputs, sentences, strict=True)
    for output, sentence in tqdm(
        pairs, "M2", len(sentences), leave=False, unit=" sentences", disable=None
    ):
        readings = (total + counts for counts in _by_annotator(output, sentence))
        # of equal ones max takes the first, which is the annotator with the lowest id
        total = max(readings, key=lambda reading: reading.rank)
    return total


def _by_annotator(output: Sequence[str], sentence: M2Sentence) -> list[M2Counts]:
    if tuple(output) == sentence.tokens:
        return [M2Counts(0, 0, len(gold)) for gold in sentence.annotators.values()]
    lattice = edit_lattice(sentence.tokens, output)
    counts = []
    for gold in sentence.annotators.values():
        edits = best_edits(lattice, output, gold)
        counts.append(M2Counts(count_correct(edits, gold), len(edits), len(gold)))
    return counts


def edits_from_references(
    sources: Sequence[Sequence[str]], references: Sequence[Sequence[Sequence[str]]]
) -> list[M2Sentence]:
    """Gold edits made from references, for data without annotated edits; each reference is one annotator.

    An edit is a run of changed tokens. Human annotators often choose other borders, so these scores cannot be compared
    with scores against an annotated M2 file. A progress bar is shown on a terminal.
    """
    sentences = []
    several = zip(sources, *references, strict=True)
    for source, *choices in tqdm(
        several,
        "references",
        len(sources),
        leave=False,
        unit=" sentences",
        disable=None,
    ):
        edits = (
            tuple(best_edits(edit_lattice(source, choice, max_unchanged=0), choice))
            for choice in choices
        )
        sentences.append(M2Sentence(tuple(source), dict(enumerate(edits))))
    return sentences
