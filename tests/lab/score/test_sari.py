from pathlib import Path

import pytest

from fairseq_aggdec.lab.score.sari import corpus_sari, mean_sentence_sari, sentence_sari

SOURCE = "About 95 species are currently accepted ."
REFERENCES = [
    "About 95 species are currently known .",
    "About 95 species are now accepted .",
    "95 species are now accepted .",
]


@pytest.mark.parametrize(
    ("output", "score"),
    [
        ("About 95 you now get in .", 26.82782411698074),
        ("About 95 species are now agreed .", 58.89995423074248),
        ("About 95 species are currently agreed .", 50.71608864657479),
    ],
)
def test_the_examples_of_the_authors_script(output: str, score: float) -> None:
    assert 100 * sentence_sari(SOURCE, output, REFERENCES).score == pytest.approx(score)


def test_a_deletion_that_the_references_make_up_for_is_not_right_to_the_authors_script() -> None:
    # One of two "a" is deleted and the reference has one: 1 - 1 = 0 of 1. EASSE: the source has one too many, 1 of 1.
    # Orders 2 to 4: the deleted "a b", "a b a" and "a b a c" are in no reference, 1 of 1 each.
    sentence = sentence_sari("a b a c", "b a c", ["b a c d"])
    assert sentence.delete == pytest.approx(3 / 4)
    assert sentence.score == pytest.approx(0.5)
    assert corpus_sari(["a b a c"], ["b a c"], [["b a c d"]]).delete == 1


def test_a_corpus_scores_the_mean_of_its_sentences_to_the_authors_script() -> None:
    first, second = sentence_sari("a", "a", ["a"]), sentence_sari("p q r s", "p x", ["p x"])
    both = mean_sentence_sari(["a", "p q r s"], ["a", "p x"], [["a", "p x"]])
    assert both.score == pytest.approx((first.score + second.score) / 2)


def test_the_published_score_of_doing_nothing(aggdec_data: Path) -> None:
    # Martin et al. 2020 (MUSS), identity baseline on ASSET's test set, by EASSE: 20.73
    folder = aggdec_data / "asset"
    sources = (folder / "asset.test.orig").read_text(encoding="utf-8").splitlines()
    references = [(folder / f"asset.test.simp.{n}").read_text(encoding="utf-8").splitlines() for n in range(10)]
    assert round(100 * corpus_sari(sources, sources, references).score, 2) == 20.73
