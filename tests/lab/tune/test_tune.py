"""Settings of GAD++ as they are measured, and those that the rule chooses on papers/000 Tables 6 and 7."""

from pathlib import Path

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.bench.random_models import RandomModel
from fairseq_aggdec.lab.bench.rounds import ModeResult
from fairseq_aggdec.lab.bench.runs import Runs
from fairseq_aggdec.lab.tune import Baselines, Point, Setting, Sweep, table
from tests.lab.bench.tiny import LENGTH, tiny_subject

TABLE_6 = {
    10: (5.97, 26.68),
    15: (6.74, 26.94),
    20: (7.24, 26.75),
    25: (7.56, 26.92),
    30: (7.44, 26.75),
}
"""by k: mean accepted tokens, BLEU; with β = 3, τ = 1"""
TABLE_7 = {
    3: [(7.56, 27.02), (8.64, 26.92), (9.46, 26.84), (10.04, 26.78), (10.38, 26.70)],
    5: [(7.58, 27.02), (8.77, 26.92), (9.72, 26.84), (10.50, 26.74), (10.99, 26.64)],
}
"""by β: the same for τ = 1, ..., 5; with k = 25"""


def papers_sweep() -> Sweep:
    """Both tables; of k = 25, β = 3, τ = 1, which they give differently, Table 7's. Speed follows acceptance."""
    cells = {Setting(size, 3, 1.0): cell for size, cell in TABLE_6.items()}
    for beta, column in TABLE_7.items():
        cells |= {
            Setting(25, beta, float(tolerance)): cell
            for tolerance, cell in enumerate(column, start=1)
        }
    points = [
        Point(setting, bleu, tokens, 100 / tokens, 200.0)
        for setting, (tokens, bleu) in cells.items()
    ]
    return Sweep(
        {},
        Baselines(
            5, 26.72, beam_seconds=500.0, greedy_quality=26.62, greedy_seconds=400.0
        ),
        points,
    )


def rows(text: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line[:1] == "|"
    ]


def test_settings_as_in_the_paper_with_those_that_the_rule_chooses() -> None:
    heading, _, _, greedy, ten, *others = rows(
        table(papers_sweep(), "BLEU", margin=0.4, loss=-0.2)
    )
    assert heading == ["", "k", "β", "τ", "Tok.", "BLEU", "speed", "chosen"]
    assert greedy == ["greedy", "", "", "", "1.00", "26.62", "1.25x", ""]
    # 200 s of greedy over 100/5.97 s in the same rounds, times 500 s of beam search over 400 s of greedy in theirs
    assert ten == ["gad++", "10", "3", "1", "5.97", "26.68", "14.92x", ""]
    assert {row[-1]: row[1:4] for row in others if row[-1]} == {
        "high-quality": ["25", "5", "1"],
        "high-efficiency": ["25", "5", "3"],
    }
    assert (
        rows(table(papers_sweep(), "BLEU", margin=0.0, loss=0.5))[-2][-1]
        == "high-quality, high-efficiency"
    )
    assert "high-quality: none of these settings" in table(
        papers_sweep(), "BLEU", margin=9.0, loss=0.5
    )


def total_tokens(result: ModeResult) -> float:
    return float(sum(len(output.tokens) for output in result.outputs.values()))


def test_settings_reach_the_decoder_and_none_is_measured_twice(
    tiny: RandomModel, tmp_path: Path
) -> None:
    path, sweep = (
        tmp_path / "points.json",
        Sweep({"beam": 2, "batch_size": 1, "repeats": 1}),
    )
    settings = [Setting(2, 1, 0.0), Setting(8, 1, 0.0), Setting(8, 400, 1000.0)]
    with Runs(tiny_subject(tiny, oracle=None)) as runs:
        sweep.measure(path, runs, total_tokens, settings)
        assert sweep.baselines is not None
        assert (sweep.baselines.beam, sweep.baselines.greedy_quality) == (
            2,
            5 * (LENGTH + 1),
        )
        # exact matches of a random drafter are rare; where all is accepted, a block of k brings k + 1 tokens
        assert sweep.points[0].accepted < 2
        # 9 tokens, then the other 4
        assert sweep.points[2].accepted == pytest.approx((LENGTH + 1) / 2)
        sweep.measure(path, runs, lambda result: pytest.fail("decoded"), settings)
    assert Sweep.open(path, sweep.conditions) == sweep
    path.write_text('{"points": []}')
    with pytest.raises(
        AggdecError, match=r"points.json, conditions: .*; not written by aggdec tune"
    ):
        Sweep.open(path, {})
