"""The pictures of README, drawn from the traces in docs/pictures and a record; `measured_tables` writes them.

A trace is a sentence's line of `--decoding-stats` with `--retain-iter-history`.
"""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from fairseq_aggdec.lab.bench.record import load_record
from fairseq_aggdec.lab.trace import Trace, read_traces

DOCS = Path(__file__).resolve().parents[2] / "docs"
RECORD = "shipped_gec_jfleg_cpu"
BARS = {
    "beam5": "fairseq, beam 5",
    "beam1": "fairseq, beam 1",
    "greedy": "greedy (no drafts)",
    "iad": "iad (drafts)",
}
"""the modes of the chart, and their labels"""
WIDTH = 880  # pixels, as all lengths below
LINE = 22  # from one line of text to the next
_FRAME = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" xml:space="preserve">
<style>
  text {{ font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #24292f }}
  .card {{ fill: #ffffff }}
  .head {{ font-weight: bold }}
  .note {{ fill: #57606a }}
  .accepted, .ours {{ fill: #0969da }}
  .model {{ fill: #bc4c00; font-weight: bold }}
  .rejected {{ fill: #6e7781; text-decoration: line-through }}
  .fairseq {{ fill: #8c959f }}
  @media (prefers-color-scheme: dark) {{
    text {{ fill: #e6edf3 }}
    .card {{ fill: #161b22 }}
    .note, .rejected {{ fill: #9198a1 }}
    .accepted, .ours {{ fill: #58a6ff }}
    .model {{ fill: #f0883e }}
  }}
</style>
<rect class="card" width="{width}" height="{height}" rx="8"/>
{body}
</svg>
"""
"""light or dark as the reader's system, on a background of its own, so that it can be read on any page"""


def pictures() -> dict[str, str]:
    """Each picture's SVG, by its path from the repository's root."""
    return {"docs/pictures/passes.svg": passes(), "docs/pictures/speed.svg": speed()}


def passes() -> str:
    """A sentence decoded token by token and with drafts: a column for each, and in it a line for each pass."""
    columns = {20: "greedy", 260: "iad"}
    traces = {x: _trace(mode) for x, mode in columns.items()}
    lines = [_text(20, 1, note="input", plain=_words(traces[20].source))]
    for x, trace in traces.items():
        lines.append(_text(x, 3, head=f"{columns[x]}: {len(trace.parts)} passes"))
        for iteration, part in enumerate(trace.parts, start=1):
            words = {
                "accepted": _words(part.drafted),
                "model": _words(part.chosen),
                "rejected": _words(part.rejected),
            }
            lines.append(_text(x, 3 + iteration, note=f"{iteration:>2}", **words))
    height = 3 + len(traces[20].parts)
    legend = {
        "accepted": "accepted draft tokens",
        "model": "the model's own token",
        "rejected": "rejected draft tokens",
    }
    for line, kind in enumerate(legend, start=height - 2):
        lines.append(_text(260, line, **{kind: legend[kind]}))
    return _framed(height, lines)


def speed() -> str:
    """Milliseconds of a sentence in some modes, as bars."""
    record = load_record(DOCS / "benchmarks" / f"{RECORD}.json")
    runs = {run.mode: run for run in record.at(1)}
    times = {mode: runs[mode].milliseconds for mode in BARS}
    lines = [
        _text(20, 1, head="milliseconds a sentence", note="(the shipped corrector)")
    ]
    for line, (mode, time) in enumerate(times.items(), start=2):
        kind = "fairseq" if mode.startswith("beam") else "ours"
        length = 600 * time / max(times.values())
        lines += [
            _text(20, line, plain=BARS[mode]),
            f'<rect class="{kind}" x="190" y="{LINE * line - 13}" width="{length:.0f}" height="16"/>',
            _text(200 + round(length), line, plain=f"{time:.1f}"),
        ]
    machine = f"{record.machine['threads']} threads of an {record.machine['processor']}"
    where = f"{machine}, fp32, {record.date[:10]}, commit {record.commit}"
    return _framed(7, [*lines, _text(20, 7, note=where)])


def _framed(height: int, lines: Sequence[str]) -> str:
    """A picture of `height` lines of text."""
    return _FRAME.format(width=WIDTH, height=LINE * height + 14, body="\n".join(lines))


def _text(x: int, line: int, **parts: str) -> str:
    """One line of text; `parts` are its words by their class."""
    spans = [
        f'<tspan class="{kind}">{escape(words)}</tspan>'
        for kind, words in parts.items()
        if words
    ]
    return f'<text x="{x}" y="{LINE * line}">{" ".join(spans)}</text>'


def _trace(mode: str) -> Trace:
    [trace] = read_traces(DOCS / "pictures" / f"{mode}.jsonl")
    return trace


def _words(tokens: Sequence[str]) -> str:
    return " ".join(tokens).replace("@@ ", "").replace("</s>", "(end)")
