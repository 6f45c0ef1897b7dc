"""All metrics by name, with the inputs that each needs and the columns that it fills."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import sacrebleu

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.edit_ratio import edit_ratio
from fairseq_aggdec.lab.score.bleu import compound_split_bleu, detokenised_bleu, signature, tokenised_bleu
from fairseq_aggdec.lab.score.gleu import corpus_gleu
from fairseq_aggdec.lab.score.m2_file import M2Sentence
from fairseq_aggdec.lab.score.m2_score import corpus_m2, edits_from_references
from fairseq_aggdec.lab.score.reference_set import Lines, ReferenceSet
from fairseq_aggdec.lab.score.rouge import rouge
from fairseq_aggdec.lab.score.sari import Sari, corpus_sari, mean_sentence_sari

REFERENCES, SOURCES, TEXT, M2 = "references", "sources", "text", "m2"
"""inputs that a metric can need: fields of `ReferenceSet`"""
_ONLY_BY_NAME = {"TER", "SARI (sentences)", "P (references)", "unchanged %", "equals a reference %"}
"""first columns of the metrics that are not computed unless they are named"""
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
    means: str = ""
    """what the score is, where its name alone does not say it"""

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
        return [100 * share for share in rouge(joined(outputs), list(map(joined, test.references)), options.stem)]

    def percent(share: Callable[[ReferenceSet, Lines], float]) -> Callable[[ReferenceSet, Lines], Sequence[float]]:
        return lambda test, outputs: [100 * share(test, outputs)]

    def of_texts(score: Callable[..., float]) -> Callable[[ReferenceSet, Lines], Sequence[float]]:
        return lambda test, outputs: [float(score(joined(outputs), list(map(joined, test.references))))]

    def of_edits(score: Callable[..., Sari]) -> Callable[[ReferenceSet, Lines], Sequence[float]]:
        def share(test: ReferenceSet, outputs: Lines) -> float:
            return float(score(joined(test.sources), joined(outputs), list(map(joined, test.references))).score)

        return percent(share)

    def metric(
        columns: str, needs: str, score: Callable[[ReferenceSet, Lines], Sequence[float]], means: str = ""
    ) -> Metric:
        names = tuple(columns.split(", "))
        return Metric(names, tuple(needs.split()), score, names[0] not in _ONLY_BY_NAME, means)

    return {
        "sacrebleu": metric(
            "sacrebleu",
            TEXT,
            lambda test, outputs: [detokenised_bleu(joined(outputs), test.text, test.language)],
            f"of running text, {signature()}",
        ),
        "bleu": metric("BLEU", REFERENCES, of_texts(tokenised_bleu), f"of the tokens, {signature(tokens=True)}"),
        "compound-bleu": metric(
            "compound BLEU",
            REFERENCES,
            of_texts(compound_split_bleu),
            "of the tokens, hyphenated words split as in fairseq's compound_split_bleu.sh",
        ),
        "ter": metric("TER", REFERENCES, of_texts(lambda out, refs: sacrebleu.corpus_ter(out, refs).score)),
        "rouge": metric("R-1, R-2, R-L, R-Lsum", REFERENCES, rouge_columns),
        "sari": metric("SARI", f"{SOURCES} {REFERENCES}", of_edits(corpus_sari)),
        "sentence-sari": metric("SARI (sentences)", f"{SOURCES} {REFERENCES}", of_edits(mean_sentence_sari)),
        "gleu": metric(
            "GLEU",
            f"{SOURCES} {REFERENCES}",
            percent(lambda test, outputs: corpus_gleu(test.sources, outputs, test.references, options.draws)),
        ),
        "m2": metric(f"M2 P, M2 R, M2 {f_column}", M2, lambda test, outputs: m2(test.m2, outputs)),
        "m2-references": metric(
            f"P (references), R (references), {f_column} (references)",
            f"{SOURCES} {REFERENCES}",
            lambda test, outputs: m2(edits_from_references(test.sources, test.references), outputs),
        ),
        "repetition": metric("repetition %", "", percent(lambda test, outputs: repetition_ratio(outputs))),
        "edit-ratio": metric(
            "edit ratio %", SOURCES, percent(lambda test, outputs: mean_edit_ratio(test.sources, outputs))
        ),
        "unchanged": metric("unchanged %", SOURCES, percent(lambda test, outputs: unchanged(test.sources, outputs))),
        "exact": metric(
            "equals a reference %", REFERENCES, percent(lambda test, outputs: exact(outputs, test.references))
        ),
    }


def choose_metrics(names: Sequence[str], test: ReferenceSet, settings: Settings | None = None) -> dict[str, Metric]:
    """The named metrics; without names, the default metrics that the test set has all inputs for.

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


def mean_edit_ratio(sources: Lines, outputs: Lines) -> float:
    """Return the edit ratio, mean over sentences (papers/000 Figure 5)."""
    pairs = list(zip(sources, outputs, strict=True))
    return sum(edit_ratio(source, output) for source, output in pairs) / len(pairs)


def repetition_ratio(outputs: Lines) -> float:
    """Return the share of tokens that equal the token before them (papers/001 Appendix B and Table 9).

    The paper gives no definition; programs that count subwords, or any second occurrence, give other numbers.
    """
    repeated = sum(first == second for output in outputs for first, second in pairwise(output))
    return repeated / max(1, sum(map(len, outputs)))


def unchanged(sources: Lines, outputs: Lines) -> float:
    """Return the share of outputs that equal their source."""
    return sum(source == output for source, output in zip(sources, outputs, strict=True)) / len(sources)


def exact(outputs: Lines, references: Sequence[Lines]) -> float:
    """Return the share of outputs that equal a reference."""
    return sum(output in choices for output, *choices in zip(outputs, *references, strict=True)) / len(outputs)
