"""All metrics by name, with the inputs that each needs and the columns that it fills."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sacrebleu

from fairseq_aggdec.data.m2_file import M2Sentence
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.edit_ratio import edit_ratio
from fairseq_aggdec.lab.evaluation.bleu import compound_split_bleu, detokenised_bleu, tokenised_bleu
from fairseq_aggdec.lab.evaluation.gleu import corpus_gleu
from fairseq_aggdec.lab.evaluation.m2_score import corpus_m2, edits_from_references
from fairseq_aggdec.lab.evaluation.reference_set import Lines, ReferenceSet
from fairseq_aggdec.lab.evaluation.repetition import repetition_ratio
from fairseq_aggdec.lab.evaluation.rouge import rouge
from fairseq_aggdec.lab.evaluation.sari import corpus_sari, mean_sentence_sari

REFERENCES, SOURCES, TEXT, M2 = "references", "sources", "text", "m2"
"""inputs that a metric can need: fields of `ReferenceSet`"""
OPTIONS = {REFERENCES: "--references", SOURCES: "--sources", TEXT: "--text-references", M2: "--m2"}


@dataclass(frozen=True)
class Settings:
    """Options of the metrics."""

    max_unchanged_words: int = 2
    """M2: largest number of unchanged words within an edit"""
    beta: float = 0.5
    """M2: weight of recall in F"""
    draws: int = 500
    """GLEU: number of random draws of one reference for each sentence"""
    stem: bool = False
    """ROUGE: whether to compare stems"""


@dataclass(frozen=True)
class Metric:
    """A metric of tokenised outputs."""

    columns: tuple[str, ...]
    needs: tuple[str, ...]
    score: Callable[[ReferenceSet, Lines], Sequence[float]]
    """one number for each column, in percent"""
    by_default: bool = True
    """whether it is computed when no metric is named and its inputs are there"""

    def missing(self, test: ReferenceSet) -> list[str]:
        """The inputs that the metric needs and the test set lacks."""
        return [need for need in self.needs if not getattr(test, need)]


def all_metrics(settings: Settings | None = None) -> dict[str, Metric]:
    """Every metric by its name."""
    options = settings or Settings()
    f_column = f"F{options.beta:g}"

    def m2(gold: Sequence[M2Sentence], outputs: Lines) -> list[float]:
        counts = corpus_m2(outputs, gold, options.max_unchanged_words, options.beta)
        return [100 * counts.precision, 100 * counts.recall, 100 * counts.f(options.beta)]

    def rouge_columns(test: ReferenceSet, outputs: Lines) -> list[float]:
        score = rouge(joined(outputs), list(map(joined, test.references)), options.stem)
        return [100 * part for part in (score.rouge1, score.rouge2, score.rouge_l, score.rouge_lsum)]

    return {
        "sacrebleu": Metric(
            ("sacrebleu",), (TEXT,), lambda test, outputs: [detokenised_bleu(joined(outputs), test.text, test.language)]
        ),
        "bleu": Metric(("BLEU",), (REFERENCES,), _of_texts(tokenised_bleu)),
        "compound-bleu": Metric(("compound BLEU",), (REFERENCES,), _of_texts(compound_split_bleu)),
        "ter": Metric(
            ("TER",),
            (REFERENCES,),
            _of_texts(lambda out, refs: sacrebleu.corpus_ter(out, refs).score),
            by_default=False,
        ),
        "rouge": Metric(("R-1", "R-2", "R-L", "R-Lsum"), (REFERENCES,), rouge_columns),
        "sari": Metric(
            ("SARI",),
            (SOURCES, REFERENCES),
            lambda test, outputs: [100 * corpus_sari(*_three(test, outputs)).score],
        ),
        "sentence-sari": Metric(
            ("SARI (sentences)",),
            (SOURCES, REFERENCES),
            lambda test, outputs: [100 * mean_sentence_sari(*_three(test, outputs)).score],
            by_default=False,
        ),
        "gleu": Metric(
            ("GLEU",),
            (SOURCES, REFERENCES),
            lambda test, outputs: [100 * corpus_gleu(test.sources, outputs, test.references, options.draws)],
        ),
        "m2": Metric(("M2 P", "M2 R", f"M2 {f_column}"), (M2,), lambda test, outputs: m2(test.m2, outputs)),
        "m2-references": Metric(
            ("P (references)", "R (references)", f"{f_column} (references)"),
            (SOURCES, REFERENCES),
            lambda test, outputs: m2(edits_from_references(test.sources, test.references), outputs),
            by_default=False,
        ),
        "repetition": Metric(("repetition %",), (), lambda test, outputs: [100 * repetition_ratio(outputs)]),
        "edit-ratio": Metric(
            ("edit ratio %",), (SOURCES,), lambda test, outputs: [100 * mean_edit_ratio(test.sources, outputs)]
        ),
        "unchanged": Metric(
            ("unchanged %",),
            (SOURCES,),
            lambda test, outputs: [100 * unchanged(test.sources, outputs)],
            by_default=False,
        ),
        "exact": Metric(
            ("equals a reference %",),
            (REFERENCES,),
            lambda test, outputs: [100 * exact(outputs, test.references)],
            by_default=False,
        ),
    }


def choose_metrics(names: Sequence[str], test: ReferenceSet, settings: Settings | None = None) -> dict[str, Metric]:
    """The named metrics; without names, all default metrics whose inputs the test set has.

    Raises:
        AggdecError: there is no such metric, or the test set lacks its inputs.
    """
    metrics = all_metrics(settings)
    if not names:
        return {name: metric for name, metric in metrics.items() if metric.by_default and not metric.missing(test)}
    for name in names:
        if name not in metrics:
            raise AggdecError(f"unknown metric {name!r}: choose from {', '.join(metrics)}")
        if missing := metrics[name].missing(test):
            raise AggdecError(f"metric {name} needs {' and '.join(OPTIONS[need] for need in missing)}")
    return {name: metrics[name] for name in names}


def joined(lines: Lines) -> list[str]:
    """Tokens joined by spaces."""
    return [" ".join(line) for line in lines]


def _of_texts(
    score: Callable[[list[str], list[list[str]]], float],
) -> Callable[[ReferenceSet, Lines], Sequence[float]]:
    return lambda test, outputs: [float(score(joined(outputs), list(map(joined, test.references))))]


def _three(test: ReferenceSet, outputs: Lines) -> tuple[list[str], list[str], list[list[str]]]:
    return joined(test.sources), joined(outputs), list(map(joined, test.references))


def mean_edit_ratio(sources: Lines, outputs: Lines) -> float:
    """Returns the edit ratio, mean over sentences (papers/000 Figure 5)."""
    pairs = list(zip(sources, outputs, strict=True))
    return sum(edit_ratio(source, output) for source, output in pairs) / len(pairs)


def unchanged(sources: Lines, outputs: Lines) -> float:
    """Returns the share of outputs that equal their source."""
    return sum(source == output for source, output in zip(sources, outputs, strict=True)) / len(sources)


def exact(outputs: Lines, references: Sequence[Lines]) -> float:
    """Returns the share of outputs that equal a reference."""
    return sum(output in choices for output, *choices in zip(outputs, *references, strict=True)) / len(outputs)
