import pytest
import torch
from fairseq.scoring import bleu
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_aggdec.lab.score.bleu import compound_split, detokenised_bleu, tokenised_bleu


def test_compound_split() -> None:
    assert compound_split("a well-known case") == "a well ##AT##-##AT## known case"
    assert compound_split("a-b-c") == "a ##AT##-##AT## b-c"  # one pass: b is used up
    assert compound_split("yes - no -x x-") == "yes - no -x x-"


def test_a_sentence_may_have_fewer_references() -> None:
    # against the empty line the output would be two tokens too long for the brevity penalty to count
    outputs, first = ["a b c d", "p q r s"], ["a b c d e f", "p q r s"]
    assert tokenised_bleu(outputs, [first, ["", "p q"]]) == pytest.approx(tokenised_bleu(outputs, [first]))
    assert detokenised_bleu(outputs, [first, ["", "p q"]], None) < 99


LINES = st.lists(st.sampled_from("abc"), min_size=4, max_size=9)


@settings(max_examples=25, deadline=None)
@given(pairs=st.lists(st.tuples(LINES, LINES), min_size=1, max_size=5))
def test_same_as_fairseqs_scorer(pairs: list[tuple[list[str], list[str]]]) -> None:
    symbols = {"a": 10, "b": 11, "c": 12}
    scorer = bleu.Scorer(bleu.BleuConfig(pad=1, eos=2, unk=3))
    for output, reference in pairs:
        scorer.add(*(torch.tensor([symbols[token] for token in line]).int() for line in (reference, output)))
    outputs, references = ([" ".join(pair[side]) for pair in pairs] for side in (0, 1))
    assert tokenised_bleu(outputs, [references]) == pytest.approx(scorer.score(), abs=1e-3)
