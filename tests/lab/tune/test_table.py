"""papers/000 Tables 6 and 7 as a sweep, and the settings that the rule chooses on them."""

from fairseq_aggdec.lab.tune.sweep import Baselines, Point, Setting, Sweep, table

GREEDY = 26.62
TABLE_6 = {10: (5.97, 26.68), 15: (6.74, 26.94), 20: (7.24, 26.75), 25: (7.56, 26.92), 30: (7.44, 26.75)}
"""by k: mean accepted tokens, BLEU; with β = 3, τ = 1"""
TABLE_7 = {
    3: [(7.56, 27.02), (8.64, 26.92), (9.46, 26.84), (10.04, 26.78), (10.38, 26.70)],
    5: [(7.58, 27.02), (8.77, 26.92), (9.72, 26.84), (10.50, 26.74), (10.99, 26.64)],
}
"""by β: the same for τ = 1, ..., 5; with k = 25"""


def point(size: int, beta: int, tolerance: float, accepted: float, quality: float) -> Point:
    return Point(Setting(size, beta, tolerance), quality, accepted, 100 / accepted, 200.0)  # speed follows acceptance


def table_7() -> list[Point]:
    return [
        point(25, beta, float(tolerance), *cell)
        for beta, column in TABLE_7.items()
        for tolerance, cell in enumerate(column, start=1)
    ]


def papers_sweep() -> Sweep:
    """Both tables; of k = 25, β = 3, τ = 1, which they give differently, Table 7's."""
    points = [point(size, 3, 1.0, *cell) for size, cell in TABLE_6.items()] + table_7()
    baselines = Baselines(5, 26.72, beam_seconds=500.0, greedy_quality=GREEDY, greedy_seconds=400.0)
    return Sweep({}, baselines, list({found.setting: found for found in points}.values()))


def rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]


def test_settings_as_in_the_paper_with_those_that_the_rule_chooses() -> None:
    heading, _, _, greedy, ten, *others = rows(table(papers_sweep(), "BLEU", margin=0.4, loss=-0.2))
    assert heading == ["", "k", "β", "τ", "Tok.", "BLEU", "speed", "chosen"]
    assert greedy == ["greedy", "", "", "", "1.00", "26.62", "1.25x", ""]
    # 200 s of greedy over 100/5.97 s in the same rounds, times 500 s of beam search over 400 s of greedy in theirs
    assert ten == ["gad++", "10", "3", "1", "5.97", "26.68", "14.92x", ""]
    assert {row[-1]: row[1:4] for row in others if row[-1]} == {
        "high-quality": ["25", "5", "1"],
        "high-efficiency": ["25", "5", "3"],
    }
    assert rows(table(papers_sweep(), "BLEU", margin=0.0, loss=0.5))[-2][-1] == "high-quality, high-efficiency"
    assert "high-quality: none of these settings" in table(papers_sweep(), "BLEU", margin=9.0, loss=0.5)
