"""Metrics of outputs against references, and the files that they are read from."""

from pathlib import Path

import pytest
import torch
from experiments import ptb
from fairseq.scoring import bleu
from hypothesis import given, settings
from hypothesis import strategies as st
from sacremoses import MosesTokenizer

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

SOURCE, BETTER = "a b c d e".split(), "a x c d e".split()
GOLD = M2Sentence(tuple(SOURCE), {0: (Edit(1, 2, ("x",)), Edit(4, 5, ("y",)))})
TEST = ReferenceSet([SOURCE], [[BETTER]], [["a x c d e"]], None, [GOLD])


def test_every_metric_fills_its_columns_with_percentages() -> None:
    metrics = all_metrics()
    scores = {name: metric.score(TEST, [BETTER]) for name, metric in metrics.items()}
    assert {name: len(found) for name, found in scores.items()} == {
        n: len(m.columns) for n, m in metrics.items()
    }
    for name in (
        "sacrebleu",
        "bleu",
        "compound-bleu",
        "gleu",
        "exact",
        "rouge",
        "m2-references",
    ):
        assert scores[name] == pytest.approx([100.0] * len(scores[name])), name
    assert metrics["m2"].columns == ("M2 P", "M2 R", "M2 F0.5")
    assert scores["m2"] == pytest.approx([100, 50, 250 / 3])
    assert scores["edit-ratio"] == [20]
    assert (scores["ter"], scores["unchanged"], scores["repetition"]) == ([0], [0], [0])
    assert metrics["repetition"].score(TEST, [["a", "a"]]) == [50]
    assert metrics["unchanged"].score(TEST, [SOURCE]) == [100]


def test_what_is_given_chooses_or_names_in_that_order() -> None:
    assert list(choose_metrics([], ReferenceSet([], [[BETTER]]))) == [
        "bleu",
        "compound-bleu",
        "rouge",
        "repetition",
    ]
    assert list(choose_metrics([], ReferenceSet([], [], [["x"]]))) == [
        "sacrebleu",
        "repetition",
    ]
    assert list(choose_metrics([], ReferenceSet([SOURCE], [], m2=[GOLD]))) == [
        "m2",
        "repetition",
        "edit-ratio",
    ]
    assert list(choose_metrics(["exact", "bleu"], TEST)) == ["exact", "bleu"]
    with pytest.raises(
        AggdecError, match="metric sari needs --sources and --references"
    ):
        choose_metrics(["sari"], ReferenceSet([], [], [["x"]]))
    with pytest.raises(
        AggdecError, match="unknown metric 'meteor': choose from sacrebleu, bleu"
    ):
        choose_metrics(["meteor"], TEST)


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def test_outputs_a_sentence_a_line_or_of_fairseq_generate(tmp_path: Path) -> None:
    path = write(tmp_path / "lines", "a b", "", "c")
    assert read_outputs(path, 3) == {0: ["a", "b"], 1: [], 2: ["c"]}
    with pytest.raises(AggdecError, match="lines: has 3 lines, but the test set has 4"):
        read_outputs(path, 4)
    with pytest.raises(
        AggdecError, match=r"lines has 3, .*ref has 1; they must belong together"
    ):
        read_reference_set(path, [write(tmp_path / "ref", "a")])
    generated = (
        "S-2\tx",
        "H-2\t-1\ta@@ b c",
        "P-2\t0 0 0 0",
        "H-0\t-1\td",
        "H-0\t-2\tworse",
        "Generate test",
    )
    path = write(tmp_path / "out", *generated)
    assert read_outputs(path, 3) == {0: ["d"], 2: ["ab", "c"]}
    assert read_outputs(path, 3, join=str.upper)[2] == ["A@@", "B", "C"]
    with pytest.raises(
        AggdecError, match="has a sentence 2, but the test set has 2, counted from 0"
    ):
        read_outputs(path, 2)


def test_compound_split() -> None:
    assert compound_split("a well-known case") == "a well ##AT##-##AT## known case"
    assert compound_split("a-b-c") == "a ##AT##-##AT## b-c"  # one pass: b is used up
    assert compound_split("yes - no -x x-") == "yes - no -x x-"


def test_a_sentence_may_have_fewer_references() -> None:
    # against the empty line the output would be two tokens too long for the brevity penalty to count
    outputs, first = ["a b c d", "p q r s"], ["a b c d e f", "p q r s"]
    assert tokenised_bleu(outputs, [first, ["", "p q"]]) == pytest.approx(
        tokenised_bleu(outputs, [first])
    )
    assert detokenised_bleu(outputs, [first, ["", "p q"]], None) < 99


LINES = st.lists(st.sampled_from("abc"), min_size=4, max_size=9)


@settings(max_examples=25, deadline=None)
@given(pairs=st.lists(st.tuples(LINES, LINES), min_size=1, max_size=5))
def test_bleu_is_that_of_fairseqs_scorer(
    pairs: list[tuple[list[str], list[str]]],
) -> None:
    symbols = {"a": 10, "b": 11, "c": 12}
    scorer = bleu.Scorer(bleu.BleuConfig(pad=1, eos=2, unk=3))
    for output, reference in pairs:
        scorer.add(
            *(
                torch.tensor([symbols[token] for token in line]).int()
                for line in (reference, output)
            )
        )
    outputs, references = ([" ".join(pair[side]) for pair in pairs] for side in (0, 1))
    assert tokenised_bleu(outputs, [references]) == pytest.approx(
        scorer.score(), abs=1e-3
    )


def test_rouge_matches_sentences_one_by_one_and_counts_the_best_reference_of_each_document() -> (
    None
):
    assert rouge(["b two. a one."], [["a one. b two."]])[2:] == pytest.approx(
        [1 / 2, 1]
    )
    assert rouge(["a b", "p"], [["x y", "p q"], ["a b", "r"]])[0] == pytest.approx(
        (1 + 2 / 3) / 2
    )


def test_gleu_worked_by_hand() -> None:
    # 1-grams: a b d e match (4); c stands in the source and not in the reference (-1); g in neither (0): 3 of 6.
    # 2-grams: ab, de match (2); bc, cd are kept from the source (-2); eg (0): 0 of 5.
    # 3-grams: none matches; abc, bcd, cde are kept: -3, clipped to 0 of 4. 4-grams: abcd, bcde: -2, clipped to 0 of 3.
    source, output, reference = (
        line.split() for line in ("a b c d e f", "a b c d e g", "a b x d e f")
    )
    assert sentence_statistics(source, output, reference) == [
        6,
        6,
        *(3, 0, 0, 0),
        *(6, 5, 4, 3),
    ]
    assert corpus_gleu([source], [output], [[reference]]) == 0.0


def test_gleu_has_the_digits_of_jflegs_own_script(aggdec_data: Path) -> None:
    # gleu.py under Python 3 for the unchanged source on Moses tokens: 40.60
    moses = MosesTokenizer("en")

    def tokens(name: str) -> list[list[str]]:
        lines = (
            (aggdec_data / f"jfleg/test.{name}")
            .read_text(encoding="utf-8")
            .splitlines()
        )
        return [moses.tokenize(ptb.detokenise(line), escape=False) for line in lines]

    sources, references = tokens("src"), [tokens(f"ref{number}") for number in range(4)]
    assert round(100 * corpus_gleu(sources, sources, references), 2) == 40.60


def test_sari_of_one_sentence_by_hand() -> None:
    # Nothing is added where "d" is wanted. All is kept that should be in orders 1 to 3, nothing in order 4: 3/4.
    # Deleted are one "a", of which the source has one too many, and "a b", "a b a" and "a b a c": all rightly.
    assert corpus_sari(["a b a c"], ["b a c"], [["b a c d"]]) == pytest.approx(
        (0 + 3 / 4 + 1) / 3
    )


def test_the_published_sari_of_doing_nothing(aggdec_data: Path) -> None:
    # Martin et al. 2020 (MUSS), identity baseline on ASSET's test set, by EASSE: 20.73
    folder = aggdec_data / "asset"
    sources = (folder / "asset.test.orig").read_text(encoding="utf-8").splitlines()
    references = [
        (folder / f"asset.test.simp.{n}").read_text(encoding="utf-8").splitlines()
        for n in range(10)
    ]
    assert round(100 * corpus_sari(sources, sources, references), 2) == 20.73
