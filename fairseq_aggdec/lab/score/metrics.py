"""All metrics by name, with the inputs that each needs and the columns that it fills."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import sacrebleu

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.edit_ratio import edit_ratio
from fairseq_aggdec.lab.score.bleu import (
    compound_split_bleu,
    detokenised_bleu,
    signature,
    tokenised_bleu,
)
from fairseq_aggdec.lab.score.gleu import corpus_gleu
from fairseq_aggdec.lab.score.m2_file import M2Sentence
from fairseq_aggdec.lab.score.m2_score import corpus_m2, edits_from_references
from fairseq_aggdec.lab.score.reference_set import Lines, ReferenceSet
from fairseq_aggdec.lab.score.rouge import rouge
from fairseq_aggdec.lab.score.sari import corpus_sari

OPTIONS = {
    "references": "--references",
    "sources": "--sources",
    "text": "--text-references",
    "m2": "--m2",
}
"""inputs that a metric can need: {field of `ReferenceSet`: the option that gives it}"""
MEANS = {
    "sacrebleu": f"of running text, {signature()}",
    "bleu": f"of the tokens, {signature(tokens=True)}",
    "compound-bleu": "of the tokens, hyphenated words split as in fairseq's compound_split_bleu.sh",
}
"""by name, what a score is, where the name alone does not say it"""


Score = Callable[[ReferenceSet, Lines], Sequence[float]]
"""gives a number for each column, in percent"""


@dataclass(frozen=True)
class Metric:
    """A metric of tokenised outputs."""

    columns: tuple[str, ...]
    needs: tuple[str, ...]
    score: Score
    by_default: bool = True
    """whether it is computed when no metric is named and its inputs are there"""

    def missing(self, test: ReferenceSet) -> list[str]:
        """The inputs that the metric needs and the test set lacks."""
        return [need for need in self.needs if not getattr(test, need)]


def all_metrics(stem: bool = False) -> dict[str, Metric]:
    """Every metric by its name; `stem`: whether ROUGE compares stems."""
    references = ("references",)
    edited = ("sources", "references")

    def of_texts(score: Callable[[list[str], list[list[str]]], float]) -> Score:
        """A score of outputs and references, each as one text."""
        return lambda test, out: [score(joined(out), [*map(joined, test.references)])]

    def percent(share: Callable[[ReferenceSet, Lines], float]) -> Score:
        return lambda test, out: [100 * share(test, out)]

    def sari(test: ReferenceSet, out: Lines) -> float:
        references = [*map(joined, test.references)]
        return corpus_sari(joined(test.sources), joined(out), references)

    def m2(gold: Sequence[M2Sentence], out: Lines) -> list[float]:
        counts = corpus_m2(out, gold)
        return [100 * counts.precision, 100 * counts.recall, 100 * counts.f]

    def of_references(test: ReferenceSet, out: Lines) -> list[float]:
        return m2(edits_from_references(test.sources, test.references), out)

    def rouge_of(test: ReferenceSet, out: Lines) -> list[float]:
        shares = rouge(joined(out), [*map(joined, test.references)], stem)
        return [100 * share for share in shares]

    return {
        "sacrebleu": Metric(
            ("sacrebleu",),
            ("text",),
            lambda test, out: [detokenised_bleu(joined(out), test.text, test.language)],
        ),
        "bleu": Metric(("BLEU",), references, of_texts(tokenised_bleu)),
        "compound-bleu": Metric(
            ("compound BLEU",), references, of_texts(compound_split_bleu)
        ),
        "ter": Metric(
            ("TER",),
            references,
            of_texts(lambda *texts: sacrebleu.corpus_ter(*texts).score),
            False,
        ),
        "rouge": Metric(("R-1", "R-2", "R-L", "R-Lsum"), references, rouge_of),
        "sari": Metric(("SARI",), edited, percent(sari)),
        "gleu": Metric(
            ("GLEU",),
            edited,
            percent(lambda test, out: corpus_gleu(test.sources, out, test.references)),
        ),
        "m2": Metric(
            ("M2 P", "M2 R", "M2 F0.5"), ("m2",), lambda test, out: m2(test.m2, out)
        ),
        "m2-references": Metric(
            ("P (references)", "R (references)", "F0.5 (references)"),
            edited,
            of_references,
            False,
        ),
        "repetition": Metric(
            ("repetition %",), (), percent(lambda test, out: repetition_ratio(out))
        ),
        "edit-ratio": Metric(
            ("edit ratio %",),
            ("sources",),
            percent(lambda test, out: mean_edit_ratio(test.sources, out)),
        ),
        "unchanged": Metric(
            ("unchanged %",),
            ("sources",),
            percent(lambda test, out: exact(out, [test.sources])),
            False,
        ),
        "exact": Metric(
            ("equals a reference %",),
            references,
            percent(lambda test, out: exact(out, test.references)),
            False,
        ),
    }


def choose_metrics(
    names: Sequence[str], test: ReferenceSet, stem: bool = False
) -> dict[str, Metric]:
    """The named metrics; without names, the default metrics that the test set has all inputs for.

    Raises:
        AggdecError: there is no such metric, or the test set lacks its inputs.
    """
    metrics = all_metrics(stem)
    if not names:
        return {
            name: metric
            for name, metric in metrics.items()
            if metric.by_default and not metric.missing(test)
        }
    for name in names:
        if name not in metrics:
            raise AggdecError(
                f"unknown metric {name!r}: choose from {', '.join(metrics)}"
            )
        if missing := metrics[name].missing(test):
            raise AggdecError(
                f"metric {name} needs {' and '.join(OPTIONS[need] for need in missing)}"
            )
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
    repeated = sum(
        first == second for output in outputs for first, second in pairwise(output)
    )
    return repeated / max(1, sum(map(len, outputs)))


def exact(outputs: Lines, references: Sequence[Lines]) -> float:
    """Return the share of outputs that equal a reference, or a source."""
    return sum(
        output in choices for output, *choices in zip(outputs, *references, strict=True)
    ) / len(outputs)
