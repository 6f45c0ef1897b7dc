import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.score.m2_file import Edit, M2Sentence
from fairseq_aggdec.lab.score.metrics import Settings, all_metrics, choose_metrics
from fairseq_aggdec.lab.score.reference_set import ReferenceSet

SOURCE, BETTER = "a b c d e".split(), "a x c d e".split()
GOLD = M2Sentence(tuple(SOURCE), {0: (Edit(1, 2, ("x",)), Edit(4, 5, ("y",)))})
TEST = ReferenceSet([SOURCE], [[BETTER]], [["a x c d e"]], None, [GOLD])


def test_every_metric_fills_its_columns_with_percentages() -> None:
    metrics = all_metrics(Settings(beta=1))
    scores = {name: metric.score(TEST, [BETTER]) for name, metric in metrics.items()}
    assert {name: len(found) for name, found in scores.items()} == {n: len(m.columns) for n, m in metrics.items()}
    for name in ("sacrebleu", "bleu", "compound-bleu", "gleu", "exact", "rouge", "m2-references"):
        assert scores[name] == pytest.approx([100.0] * len(scores[name])), name
    assert metrics["m2"].columns == ("M2 P", "M2 R", "M2 F1")
    assert scores["m2"] == pytest.approx([100, 50, 200 / 3])
    assert scores["edit-ratio"] == [20]
    assert (scores["ter"], scores["unchanged"], scores["repetition"]) == ([0], [0], [0])
    assert metrics["repetition"].score(TEST, [["a", "a"]]) == [50]
    assert metrics["unchanged"].score(TEST, [SOURCE]) == [100]


def test_what_is_given_chooses_or_names_in_that_order() -> None:
    assert list(choose_metrics([], ReferenceSet([], [[BETTER]]))) == ["bleu", "compound-bleu", "rouge", "repetition"]
    assert list(choose_metrics([], ReferenceSet([], [], [["x"]]))) == ["sacrebleu", "repetition"]
    assert list(choose_metrics([], ReferenceSet([SOURCE], [], m2=[GOLD]))) == ["m2", "repetition", "edit-ratio"]
    assert list(choose_metrics(["exact", "bleu"], TEST)) == ["exact", "bleu"]
    with pytest.raises(AggdecError, match="metric sari needs --sources and --references"):
        choose_metrics(["sari"], ReferenceSet([], [], [["x"]]))
    with pytest.raises(AggdecError, match="unknown metric 'meteor': choose from sacrebleu, bleu"):
        choose_metrics(["meteor"], TEST)
