from collections.abc import Sequence
from dataclasses import replace

from fairseq_aggdec.lab.evaluation.metrics import Lines, choose_metrics
from fairseq_aggdec.lab.evaluation.reference_set import ReferenceSet
from fairseq_aggdec.lab.evaluation.score_table import ScoreTable

TEST = ReferenceSet([list("abcd"), list("pq")], [[list("abcx"), list("pq")]])


def test_equal_outputs_are_scored_once() -> None:
    ((name, metric),) = choose_metrics(["exact"], TEST).items()
    calls = []

    def score(test: ReferenceSet, lines: Lines) -> Sequence[float]:
        calls.append(len(lines))
        return metric.score(test, lines)

    table = ScoreTable("dev", TEST, {name: replace(metric, score=score)})
    for row, outputs in {"greedy": "abcd", "iad": "abcd", "beam5": "abcx"}.items():
        table.add(row, {0: list(outputs), 1: list("pq")})
    table.add("part", {0: list("abcd")})
    assert {name: row.sentences for name, row in table.rows.items()} == {"greedy": 2, "iad": 2, "beam5": 2, "part": 1}
    assert [row.scores["equals a reference %"] for row in table.rows.values()] == [50, 50, 100, 0]
    assert calls == [2, 2, 1]
