"""Shows decoded sentences iteration by iteration as one self-contained HTML page (papers/000 Table 17)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from fairseq_aggdec.lab.reporting.trace import BIFURCATION, BONUS, SINGLE, WHOLE, Segment
from fairseq_aggdec.lab.reporting.trace_text import note
from fairseq_aggdec.lab.reporting.traces import Trace, TraceFile

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #fff; --line: #d0d0d0; --dim: #6b6b6b;
  --acc: #0b4fa8; --accbg: #dbe9fb; --bif: #a3120a; --bifbg: #fbdcd9; --bon: #14661c; --bonbg: #d8f0da;
  --one: #7a4b00; --onebg: #fbeac8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --paper: #161616; --line: #444; --dim: #a0a0a0; --acc: #a9cdff; --accbg: #17345c;
    --bif: #ffb3ac; --bifbg: #5b1a15; --bon: #a8e6ae; --bonbg: #17471d; --one: #ffd88a; --onebg: #533a08; }
}
body { color: var(--ink); background: var(--paper); font: 1rem/1.6 system-ui, sans-serif; max-width: 70rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; border-bottom: 1px solid var(--line); margin-top: 2.5rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem .5rem; border-top: 1px solid var(--line);
  font-weight: normal; }
tr.v > * { border-top: 0; }
th, .n { color: var(--dim); white-space: nowrap; } .n { white-space: normal; width: 16rem; font-size: .875rem; }
.t { font-family: ui-monospace, monospace; font-size: .9rem; }
.t span, .t del, .t b { padding: 0 .2em; border-radius: .2em; unicode-bidi: isolate; }
.p { color: var(--dim); }
.a { color: var(--acc); background: var(--accbg); }
b { font-weight: bold; }
.bif { color: var(--bif); background: var(--bifbg); outline: 1px solid var(--bif); }
.bon { color: var(--bon); background: var(--bonbg); outline: 1px dashed var(--bon); }
.one { color: var(--one); background: var(--onebg); outline: 1px dotted var(--one); }
del { color: var(--dim); text-decoration: line-through; }
del.x { color: var(--bif); background: var(--bifbg); }
.legend li { margin: .2rem 0; }
""".strip()

_OWN = {BIFURCATION: "bif", BONUS: "bon", SINGLE: "one", WHOLE: ""}
_LEGEND = (
    ('<span class="p">grey</span>', "decoded in the iterations before"),
    ('<span class="a">blue</span>', "drafted, verified in one block and accepted"),
    ('<del class="x">red, struck through</del>', "the drafted token at the bifurcation, which the verifier overwrote"),
    ("<del>struck through</del>", "drafted behind it, and thrown away"),
    ('<b class="bif">red, framed</b>', "the verifier's own token at the bifurcation"),
    (
        '<b class="bon">green, dashed</b>',
        "the bonus token: the verifier's own after a draft that was accepted as a whole",
    ),
    ('<b class="one">yellow, dotted</b>', "re-decoded: a single step of the verifier, without a draft"),
)


def page(files: Sequence[TraceFile], title: str) -> str:
    """A whole HTML document.

    Args:
        files: the decoded sentences of each file.
        title: heading of the page.
    """
    legend = "\n".join(f'<li><span class="t">{look}</span> {escape(meaning)}</li>' for look, meaning in _LEGEND)
    sections = "\n".join(_section(file) for file in files)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{_STYLE}
</style>
</head>
<body>
<h1>{escape(title)}</h1>
<p>One iteration is a pair of lines: the draft, and what the verifier made of it. Tokens are subwords; &lt;/s&gt; is the
end of the sentence.</p>
<ul class="legend">
{legend}
</ul>
{sections}
</body>
</html>
"""


def _section(file: TraceFile) -> str:
    return "\n".join([f"<h2>{escape(file.name)}</h2>", *map(_sentence, file.traces)])


def _sentence(trace: Trace) -> str:
    rows = [f'<tr><th scope="row" colspan="2">source</th><td class="t">{_words(trace.source)}</td><td></td></tr>']
    prefix: list[str] = []
    for number, part in enumerate(trace.parts, start=1):
        rows.append(_rows(number, prefix, part))
        prefix += [*part.drafted, *part.own]
    rows.append(f'<tr><th scope="row" colspan="2">output</th><td class="t">{_words(prefix)}</td><td></td></tr>')
    table = "\n".join(["<table>", *rows, "</table>"])
    return f'<h3>Sentence {trace.number}: {escape(trace.summary)}</h3>\n<div class="scroll">\n{table}\n</div>'


def _rows(number: int, prefix: Sequence[str], part: Segment) -> str:
    before = [f'<span class="p">{_words(prefix)}</span>'] if prefix else []
    accepted = [f'<span class="a">{_words(part.drafted)}</span>'] if part.drafted else []
    drafted = [*accepted]
    if part.rejected:
        drafted.append(f'<del class="x">{escape(part.rejected[0])}</del>')
        if part.rejected[1:]:
            drafted.append(f"<del>{_words(part.rejected[1:])}</del>")
    own = [f'<b class="{_OWN[part.step]}">{_words(part.own)}</b>'] if part.own else []
    draft = " ".join([*before, *drafted]) if drafted else "(no draft)"
    verified = " ".join([*before, *accepted, *own])
    return (
        f'<tbody>\n<tr><th scope="rowgroup" rowspan="2">{number}</th>'
        f'<th scope="row">draft</th><td class="t">{draft}</td>'
        f'<td class="n" rowspan="2">{escape(note(part))}</td></tr>\n'
        f'<tr class="v"><th scope="row">verified</th><td class="t">{verified}</td></tr>\n</tbody>'
    )


def _words(tokens: Iterable[str]) -> str:
    return escape(" ".join(tokens))
