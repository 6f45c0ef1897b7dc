"""Settings of GAD++ as they are measured, and those that the rule chooses on papers/000 Tables 6 and 7."""

from dataclasses import replace
from pathlib import Path

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.bench.random_models import RandomModel
from fairseq_aggdec.lab.bench.rounds import ModeResult
from fairseq_aggdec.lab.bench.runs import Runs
from fairseq_aggdec.lab.tune import NO_DRAFTS, Point, Setting, Sweep, table
from tests.lab.bench.tiny import LENGTH, tiny_subject

PAPER = """
10 3 1 5.97 26.68
15 3 1 6.74 26.94
20 3 1 7.24 26.75
30 3 1 7.44 26.75
25 3 1 7.56 27.02
25 3 2 8.64 26.92
25 3 3 9.46 26.84
25 3 4 10.04 26.78
25 3 5 10.38 26.70
25 5 1 7.58 27.02
25 5 2 8.77 26.92
25 5 3 9.72 26.84
25 5 4 10.50 26.74
25 5 5 10.99 26.64
"""
"""k, β, τ, mean accepted tokens and BLEU of Tables 6 and 7; what they give differently is Table 7's"""


def papers_sweep() -> Sweep:
    """Speed follows acceptance."""
    points = [
        Point(
            "gad++",
            Setting(int(size), int(beta), float(tolerance)),
            float(bleu),
            float(tokens),
            seconds=100 / float(tokens),
            greedy_seconds=200.0,
        )
        for size, beta, tolerance, tokens, bleu in map(
            str.split, PAPER.splitlines()[1:]
        )
    ]
    beam = Point(
        "beam 5",
        NO_DRAFTS,
        26.72,
        accepted=1.0,
        seconds=500.0,
        greedy_seconds=400.0,
    )
    greedy = replace(beam, search="greedy", quality=26.62, seconds=400.0)
    return Sweep({}, [beam, greedy], points)


def rows(margin: float, loss: float) -> list[str]:
    """The printed rows, with a space between two cells."""
    text = table(papers_sweep(), "BLEU", margin, loss).replace("|", "")
    return [" ".join(line.split()) for line in text.splitlines()]


def test_settings_as_in_the_paper_with_those_that_the_rule_chooses() -> None:
    heading, _, beam, greedy, ten, *others = rows(margin=0.4, loss=-0.2)
    assert heading == "k β τ Tok. BLEU speed chosen"
    assert beam == "beam 5 1.00 26.72 1.00x"
    assert greedy == "greedy 1.00 26.62 1.25x"
    # 200 s of greedy over 100/5.97 s in the same rounds, times 500 s of beam search over 400 s of greedy in theirs
    assert ten == "gad++ 10 3 1 5.97 26.68 14.92x"
    assert [row for row in others if "high" in row] == [
        "gad++ 25 5 1 7.58 27.02 18.95x high-quality",
        "gad++ 25 5 3 9.72 26.84 24.30x high-efficiency",
    ]
    assert rows(margin=0.0, loss=0.5)[-2].endswith("x high-quality, high-efficiency")
    assert rows(margin=9.0, loss=0.5)[-1] == "high-quality: none of these settings"


def total_tokens(result: ModeResult) -> float:
    return float(sum(len(output.tokens) for output in result.outputs.values()))


def test_settings_reach_the_decoder_and_none_is_measured_twice(
    tiny: RandomModel, tmp_path: Path
) -> None:
    path = tmp_path / "points.json"
    sweep = Sweep({"beam": 2, "batch_size": 1, "repeats": 1, "precision": "fp32"})
    settings = [
        Setting(2, 1, 0.0),
        Setting(8, 1, 0.0),
        Setting(8, 400, 1000.0),
    ]
    with Runs(tiny_subject(tiny, oracle=None)) as runs:
        sweep.measure(path, runs, total_tokens, settings)
        assert sweep.baselines[0].search == "beam 2"
        assert sweep.greedy.quality == 5 * (LENGTH + 1)
        # exact matches of a random drafter are rare; where all is accepted, a block of k brings k + 1 tokens
        assert sweep.points[0].accepted < 2
        # 9 tokens, then the other 4
        assert sweep.points[2].accepted == pytest.approx((LENGTH + 1) / 2)
        sweep.measure(path, runs, lambda result: pytest.fail("decoded"), settings)
    assert Sweep.open(path, sweep.conditions) == sweep
    path.write_text('{"points": []}')
    with pytest.raises(
        AggdecError, match=r"points.json, cond.*not written by aggdec t"
    ):
        Sweep.open(path, {})
