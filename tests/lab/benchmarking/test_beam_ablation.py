"""What is counted of a look-ahead without some of its parts, on a tiny random model and its drafter."""

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.benchmarking.beam_ablation import Counts, measure, tables, variants
from fairseq_aggdec.lab.benchmarking.random_models import RandomModel, random_sentences
from tests.engine_faults import branches_see_each_other
from tests.lab.benchmarking.tiny import LENGTH, VOCABULARY, tiny_subject

SENTENCES = 3


@pytest.fixture(scope="module", params=[False, True], ids=["source", "drafter"])
def found(request: pytest.FixtureRequest, tiny: RandomModel) -> dict[str, Counts]:
    subject = tiny_subject(tiny, sentences=random_sentences(SENTENCES, LENGTH, VOCABULARY))
    if not request.param:
        subject = tiny_subject(tiny, sentences=subject.sentences, drafter_path=None, block_size=0)
    return measure(subject, 3, variants(request.param, budgets=(4, 30), ablated=30))


def test_every_variant_takes_the_same_steps_and_few_passes_or_many(found: dict[str, Counts]) -> None:
    """What is left out lends nothing."""
    plain, learnt, few, many, without_rejoining, without_other = found.values()
    assert {(counts.sentences, counts.steps) for counts in found.values()} == {(SENTENCES, plain.passes)}
    assert plain.ahead == plain.used == 0
    assert plain.passes >= few.passes >= many.passes > 0
    assert many.positions > few.positions >= plain.positions
    assert 0 < many.used < many.ahead < many.positions
    assert learnt.passes <= plain.passes
    assert many.loans["rejoining"].prefixes > 0
    assert without_rejoining.loans["rejoining"].prefixes == 0
    assert without_other.loans["draft"].prefixes == 0
    for loans in many.loans.values():
        assert loans.prefixes >= loans.reached >= loans.right >= 0
    text = tables(found)
    assert all(f"| {name} " in text for name in found)


def test_other_lists_are_an_error(tiny: RandomModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here because prefixes see other branches."""
    branches_see_each_other(monkeypatch)
    subject = tiny_subject(tiny, drafter_path=None, block_size=0)
    with pytest.raises(AggdecError, match="have other lists than in plain"):
        measure(subject, 3, variants(False, budgets=(30,)))
