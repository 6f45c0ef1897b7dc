import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.score.m2_file import GoldEdit, M2Sentence
from fairseq_aggdec.lab.score.metrics import Settings, all_metrics, choose_metrics
from fairseq_aggdec.lab.score.reference_set import ReferenceSet

SOURCE, BETTER = "a b c d e".split(), "a x c d e".split()
GOLD = M2Sentence(tuple(SOURCE), {0: (GoldEdit(1, 2, ("x",)), GoldEdit(4, 5, ("y",)))})
TEST = ReferenceSet([SOURCE], [[BETTER]], [["a x c d e"]], None, [GOLD])


def test_every_metric_fills_its_columns() -> None:
    for name, metric in all_metrics().items():
        scores = metric.score(TEST, [BETTER])
        assert len(scores) == len(metric.columns), name
        assert all(isinstance(score, float) and 0 <= score < 100.01 for score in scores), name


def test_percentages() -> None:
    metrics = all_metrics(Settings(beta=1))
    assert metrics["m2"].columns == ("M2 P", "M2 R", "M2 F1")
    assert metrics["m2"].score(TEST, [BETTER]) == pytest.approx([100, 50, 200 / 3])
    assert metrics["m2-references"].score(TEST, [BETTER]) == [100, 100, 100]
    assert metrics["edit-ratio"].score(TEST, [BETTER]) == [20]
    assert metrics["repetition"].score(TEST, [["a", "a"]]) == [50]
    assert metrics["unchanged"].score(TEST, [SOURCE]) == metrics["exact"].score(TEST, [BETTER]) == [100]
    assert metrics["bleu"].score(TEST, [BETTER]) == pytest.approx([100])
    assert metrics["gleu"].score(TEST, [BETTER]) == pytest.approx([100])


def test_what_is_given_chooses() -> None:
    assert list(choose_metrics([], ReferenceSet([], [[BETTER]]))) == ["bleu", "compound-bleu", "rouge", "repetition"]
    assert list(choose_metrics([], ReferenceSet([], [], [["x"]]))) == ["sacrebleu", "repetition"]
    assert list(choose_metrics([], ReferenceSet([SOURCE], [], m2=[GOLD]))) == ["m2", "repetition", "edit-ratio"]
    assert {"sari", "gleu", "edit-ratio"} < set(choose_metrics([], ReferenceSet([SOURCE], [[BETTER]])))


def test_named_metrics_in_that_order_and_what_they_lack() -> None:
    assert list(choose_metrics(["exact", "bleu"], TEST)) == ["exact", "bleu"]
    with pytest.raises(AggdecError, match="metric sari needs --sources and --references"):
        choose_metrics(["sari"], ReferenceSet([], [], [["x"]]))
    with pytest.raises(AggdecError, match="unknown metric 'meteor': choose from sacrebleu, bleu"):
        choose_metrics(["meteor"], TEST)
