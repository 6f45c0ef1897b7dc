from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.bench.random_models import RandomModel
from fairseq_aggdec.lab.bench.runs import Runs
from fairseq_aggdec.lab.tune.sweep import Setting, Sweep
from tests.lab.bench.tiny import LENGTH, tiny_subject

SETTINGS = [Setting(2, 1, 0.0), Setting(8, 1, 0.0), Setting(8, 400, 1000.0)]


def total_tokens(outputs: Mapping[int, Sequence[int]]) -> float:
    return float(sum(map(len, outputs.values())))


def test_settings_reach_the_decoder(tuned: RandomModel, tmp_path: Path) -> None:
    path, sweep = tmp_path / "points.json", Sweep({"repeats": 1})
    with Runs(tiny_subject(tuned, oracle=None)) as runs:
        sweep.measure(path, runs, total_tokens, SETTINGS, beam=2, batch_size=1, repeats=1)
        assert sweep.baselines is not None
        assert sweep.baselines.beam == 2
        assert sweep.baselines.greedy_quality == 5 * (LENGTH + 1)
        points = sweep.points
        assert all(point.seconds > 0 and point.greedy_seconds > 0 for point in points)
        # exact matches of a random drafter are rare; where all is accepted, a block of k brings k + 1 tokens
        assert points[0].accepted < 2
        assert points[2].accepted == pytest.approx((LENGTH + 1) / 2)  # 9 tokens, then the other 4
        # measured already: nothing is decoded again
        sweep.measure(path, runs, lambda outputs: pytest.fail("decoded"), SETTINGS, beam=2, batch_size=1, repeats=1)
    assert Sweep.open(path, sweep.conditions) == sweep
    with pytest.raises(AggdecError, match=r"other conditions \(repeats: 5 now, 1 there\); .*: name another file"):
        Sweep.open(path, {"repeats": 5})
    path.write_text('{"points": []}')
    with pytest.raises(AggdecError, match=r"points.json, conditions: .*; not written by aggdec tune"):
        Sweep.open(path, {})
