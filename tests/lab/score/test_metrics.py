"""Metrics of outputs against references, and the files that they are read from."""

from pathlib import Path

import pytest
import torch
from fairseq.scoring import bleu
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.score.bleu import (
    compound_split,
    detokenised_bleu,
    tokenised_bleu,
)
from fairseq_aggdec.lab.score.gleu import corpus_gleu, sentence_statistics
from fairseq_aggdec.lab.score.m2_file import Edit, M2Sentence
from fairseq_aggdec.lab.score.metrics import all_metrics, choose_metrics
from fairseq_aggdec.lab.score.reference_set import (
    ReferenceSet,
    read_outputs,
    read_reference_set,
)
from fairseq_aggdec.lab.score.rouge import rouge
from fairseq_aggdec.lab.score.sari import corpus_sari

SOURCE = "a b c d-e f g h".split()
OUTPUT = "a x c d-e g g h".split()
BETTER = "a x c d-e f g i".split()
GOLD = M2Sentence(
    tuple(SOURCE),
    {0: (Edit(1, 2, ("x",)), Edit(4, 5, ("y",)), Edit(6, 7, ("i",)))},
)
TEST = ReferenceSet([SOURCE], [[BETTER]], [["a x c d-e f g h"]], None, [GOLD])


SCORES = {
    # 6/7, 4/6, 2/5 and 1/4 of the n-grams: in the running text, g h is right, too
    "sacrebleu": [48.892],
    "bleu": [43.472],  # 5/7, 3/6, 2/5, 1/4
    "compound-bleu": [61.047],  # d ##AT##-##AT## e: 7/9, 5/8, 4/7, 3/6
    "ter": [28.571],  # 2/7
    "rouge": [75, 57.143, 75, 75],  # 6/8 of the words, 4/7 of the pairs
    # adding (2/3 + 4/7 + 1/2 + 2/7)/4, keeping (4/5 + 2/5)/4, deleting (1/2 + 4/7 + 3/4 + 6/7)/4
    "sari": [49.187],
    "gleu": [37.150],  # h and g h were to go: 4/7, 2/6, 2/5, 1/4
    "m2": [50, 33.333, 45.455],
    "m2-references": [50, 50, 50],
    "repetition": [14.286],
    "edit-ratio": [28.571],
    "unchanged": [0],
    "exact": [0],
}
"""of OUTPUT, by hand; sacrebleu, nltk and rouge-score agree"""


@pytest.mark.parametrize("name", SCORES)
def test_every_metric_fills_its_columns_with_percentages(name: str) -> None:
    metric = all_metrics()[name]
    scores = metric.score(TEST, [OUTPUT])
    assert len(metric.columns) == len(scores)
    assert scores == pytest.approx(SCORES[name], abs=1e-3)


@pytest.mark.parametrize(("name", "equal"), [("unchanged", SOURCE), ("exact", BETTER)])
def test_one_of_two_outputs_that_equals_its_line_is_half(
    name: str, equal: list[str]
) -> None:
    twice = ReferenceSet([SOURCE] * 2, [[BETTER] * 2])
    assert all_metrics()[name].score(twice, [OUTPUT, equal]) == [50]


def test_what_is_given_chooses_or_names_in_that_order() -> None:
    assert list(all_metrics()) == list(SCORES)
    for given_set, chosen in (
        (
            ReferenceSet([], [[BETTER]]),
            "bleu compound-bleu rouge repetition",
        ),
        (
            ReferenceSet([], [], [["x"]]),
            "sacrebleu repetition",
        ),
        (
            ReferenceSet([SOURCE], [], m2=[GOLD]),
            "m2 repetition edit-ratio",
        ),
    ):
        assert list(choose_metrics([], given_set)) == chosen.split()
    assert list(choose_metrics(["exact", "bleu"], TEST)) == ["exact", "bleu"]
    with pytest.raises(AggdecError, match="sari needs --sources and --references"):
        choose_metrics(["sari"], ReferenceSet([], [], [["x"]]))
    with pytest.raises(AggdecError, match="unknown metric 'meteor': choose from sacre"):
        choose_metrics(["meteor"], TEST)


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_outputs_a_sentence_a_line_or_of_fairseq_generate(tmp_path: Path) -> None:
    path = write(tmp_path / "lines", "a b", "", "c")
    assert list(read_outputs(path, 3).values()) == [["a", "b"], [], ["c"]]
    with pytest.raises(AggdecError, match="lines: has 3 lines, but the test set has 4"):
        read_outputs(path, 4)
    with pytest.raises(AggdecError, match=r"lines has 3, .*ref has 1; they must belon"):
        read_reference_set(path, [write(tmp_path / "ref", "a")])
    generated = (
        "S-2\tx|H-2\t-1\ta@@ b c|P-2\t0 0 0 0|H-0\t-1\td|H-0\t-2\tworse|Generate"
    )
    path = write(tmp_path / "out", *generated.split("|"))
    assert read_outputs(path, 3) == {0: ["d"], 2: ["ab", "c"]}
    assert read_outputs(path, 3, join=str.upper)[2] == ["A@@", "B", "C"]
    with pytest.raises(
        AggdecError, match="has a sentence 2, but the test set has 2, c"
    ):
        read_outputs(path, 2)


@pytest.mark.parametrize(
    ("line", "split"),
    [
        ("a well-known case", "a well ##AT##-##AT## known case"),
        ("a-b-c", "a ##AT##-##AT## b-c"),  # one pass: b is used up
        ("yes - no -x x-", "yes - no -x x-"),
    ],
)
def test_compound_split(line: str, split: str) -> None:
    assert compound_split(line) == split


def test_a_sentence_may_have_fewer_references() -> None:
    # against the empty line the output would be two tokens too long for the brevity penalty to count
    outputs = ["a b c d", "p q r s"]
    first = ["a b c d e f", "p q r s"]
    second = ["", "p q"]
    alone = tokenised_bleu(outputs, [first])
    assert tokenised_bleu(outputs, [first, second]) == pytest.approx(alone)
    assert detokenised_bleu(outputs, [first, second], None) < 99


LINES = st.lists(st.sampled_from("abc"), min_size=4, max_size=9)


@settings(max_examples=25, deadline=None)
@given(pairs=st.lists(st.tuples(LINES, LINES), min_size=1, max_size=5))
def test_bleu_is_that_of_fairseqs_scorer(pairs: list[tuple[list, list]]) -> None:
    scorer = bleu.Scorer(bleu.BleuConfig(pad=1, eos=2, unk=3))
    outputs = []
    references = []
    for output, reference in pairs:
        scorer.add(
            *(
                torch.tensor([ord(token) for token in line]).int()
                for line in (reference, output)
            )
        )
        outputs.append(" ".join(output))
        references.append(" ".join(reference))
    score = tokenised_bleu(outputs, [references])
    assert score == pytest.approx(scorer.score(), abs=1e-3)


def test_rouge_matches_sentence_by_sentence_and_takes_each_documents_best() -> None:
    *_, whole, by_sentence = rouge(["b two. a one."], [["a one. b two."]])
    assert whole == pytest.approx(1 / 2)
    assert by_sentence == 1
    references = [["x y", "p q"], ["a b", "r"]]
    unigrams, *_ = rouge(["a b", "p"], references)
    assert unigrams == pytest.approx((1 + 2 / 3) / 2)


def test_gleu_worked_by_hand() -> None:
    # 1-grams: a b d e match (4); c stands in the source and not in the reference (-1); g in neither (0): 3 of 6.
    # 2-grams: ab, de match (2); bc, cd are kept from the source (-2); eg (0): 0 of 5.
    # 3-grams: none matches; abc, bcd, cde are kept: -3, clipped to 0 of 4. 4-grams: abcd, bcde: -2, clipped to 0 of 3.
    source = "a b c d e f".split()
    output = "a b c d e g".split()
    reference = "a b x d e f".split()
    counts = sentence_statistics(source, output, reference)
    assert counts == [6, 6, *(3, 0, 0, 0), *(6, 5, 4, 3)]
    assert corpus_gleu([source], [output], [[reference]]) == 0.0


def test_sari_of_one_sentence_by_hand() -> None:
    # Nothing is added where "d" is wanted. All is kept that should be in orders 1 to 3, nothing in order 4: 3/4.
    # Deleted are one "a", of which the source has one too many, and "a b", "a b a" and "a b a c": all rightly.
    score = corpus_sari(["a b a c"], ["b a c"], [["b a c d"]])
    assert score == pytest.approx((0 + 3 / 4 + 1) / 3)


def test_the_published_sari_of_doing_nothing(aggdec_data: Path) -> None:
    # Martin et al. 2020 (MUSS), identity baseline on ASSET's test set, by EASSE
    folder = aggdec_data / "asset"
    sources, *references = (
        (folder / f"asset.test.{name}").read_text(encoding="utf-8").splitlines()
        for name in ("orig", *(f"simp.{index}" for index in range(10)))
    )
    assert round(100 * corpus_sari(sources, sources, references), 2) == 20.73
