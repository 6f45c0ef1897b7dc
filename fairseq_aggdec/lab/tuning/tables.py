"""Tables of a sweep in the form of papers/000 Tables 6 and 7, and a text with the chosen settings."""

from __future__ import annotations

from collections.abc import Sequence

from fairseq_aggdec.lab.grid import text_table
from fairseq_aggdec.lab.tuning.choice import chosen, pareto_front
from fairseq_aggdec.lab.tuning.points import Baselines, Point, Setting, Sweep


def speed_up(point: Point, baselines: Baselines) -> float:
    """Speed-up over beam search: that over greedy decoding, times that of greedy decoding over beam search."""
    return point.speed_up_over_greedy * baselines.beam_seconds / baselines.greedy_seconds


def block_size_table(sweep: Sweep, settings: Sequence[Setting], quality: str) -> str:
    """papers/000 Table 6: mean accepted tokens, quality and speed of each block size."""
    baselines = _baselines(sweep)
    greedy_speed = baselines.beam_seconds / baselines.greedy_seconds
    rows = [
        [f"AR (beam = {baselines.beam})", "", "1.00", f"{baselines.beam_quality:.2f}", "1.00x"],
        ["AR (greedy)", "", "1.00", f"{baselines.greedy_quality:.2f}", f"{greedy_speed:.2f}x"],
    ]
    for setting in settings:
        point = sweep.points[setting]
        cells = [f"{point.accepted:.2f}", f"{point.quality:.2f}", f"{speed_up(point, baselines):.2f}x"]
        rows.append([f"GAD++ (top-{setting.beta}, τ = {setting.tolerance:g})", str(setting.block_size), *cells])
    return text_table(["model", "k", "Tok.", quality, "speed"], rows)


def acceptance_table(sweep: Sweep, block_size: int, quality: str) -> str:
    """papers/000 Table 7: mean accepted tokens / quality, and speed, of each β and τ at one block size."""
    baselines = _baselines(sweep)
    points = {setting: point for setting, point in sweep.points.items() if setting.block_size == block_size}
    betas = sorted({setting.beta for setting in points})
    rows = []
    for tolerance in sorted({setting.tolerance for setting in points}):
        row = [f"{tolerance:g}"]
        for beta in betas:
            point = points.get(Setting(block_size, beta, tolerance))
            row.append("" if point is None else _cell(point, baselines))
        rows.append(row)
    title = (
        f"k = {block_size}: mean accepted tokens / {quality}, speed; greedy decoding has {baselines.greedy_quality:.2f}"
    )
    return f"{title}\n\n{text_table(['τ', *(f'top-{beta}' for beta in betas)], rows)}"


def choice_text(sweep: Sweep, quality: str, margin: float, loss: float) -> str:
    """The settings that the rule of `choice` takes, and the Pareto front."""
    baselines = _baselines(sweep)
    greedy, points = baselines.greedy_quality, list(sweep.points.values())
    at_least = f"{quality} of at least {greedy + margin:.2f}, {margin:g} above greedy's" if margin else "no loss"
    limits = {
        "high-quality": at_least,
        "high-efficiency": f"{quality} of at least {greedy - loss:.2f}, {loss:g} below greedy's",
    }
    lines = [
        f"{name} ({limits[name]}): " + ("none" if point is None else f"{point.setting}: {_cell(point, baselines)}")
        for name, point in chosen(points, greedy, margin, loss).items()
    ]
    front = [f"  {point.setting}: {_cell(point, baselines)}" for point in pareto_front(points)]
    return "\n".join([*lines, "Pareto front, fastest last:", *front])


def _cell(point: Point, baselines: Baselines) -> str:
    return f"{point.accepted:.2f} / {point.quality:.2f}, {speed_up(point, baselines):.2f}x"


def _baselines(sweep: Sweep) -> Baselines:
    assert sweep.baselines is not None  # measured before any point
    return sweep.baselines
