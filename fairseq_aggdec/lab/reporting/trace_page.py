"""Shows decoded sentences iteration by iteration as one self-contained HTML page (papers/000 Table 17)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from fairseq_aggdec.lab.reporting.trace import BIFURCATION, BONUS, SINGLE, WHOLE, Segment, Trace

_STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.6 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem .5rem;
  border-top: 1px solid #8886; font-weight: normal; }
.t { font-family: ui-monospace, monospace; font-size: .9rem; }
.t * { padding: 0 .2em; border-radius: .2em; unicode-bidi: isolate; }
.p, del { opacity: .65; }
.a { background: #4a90e255; }
.bif { background: #e2504a55; outline: 1px solid; }
.bon { background: #4ab05a55; outline: 1px dashed; }
.one { background: #e2b04a55; outline: 1px dotted; }
del.x { background: #e2504a55; }
""".strip()
_OWN = {BIFURCATION: "bif", BONUS: "bon", SINGLE: "one", WHOLE: ""}
_LEGEND = """
<li class="t"><span class="p">grey</span> decoded in the iterations before</li>
<li class="t"><span class="a">blue</span> drafted, verified in one block and accepted</li>
<li class="t"><del class="x">red, struck through</del> the drafted token at the bifurcation, which the verifier overwrote</li>
<li class="t"><del>struck through</del> drafted behind it, and thrown away</li>
<li class="t"><b class="bif">framed</b> the verifier's own token at the bifurcation</li>
<li class="t"><b class="bon">dashed</b> the bonus token: the verifier's own after a draft that was accepted as a whole</li>
<li class="t"><b class="one">dotted</b> re-decoded: a single step of the verifier, without a draft</li>
""".strip()  # noqa: E501


def page(files: Mapping[str, Sequence[Trace]], title: str) -> str:
    """A whole HTML document with the decoded sentences of some files, by name."""
    parts = [part for name, traces in files.items() for part in (f"<h2>{escape(name)}</h2>", *map(_sentence, traces))]
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>\n<style>\n{_STYLE}\n</style>\n<h1>{escape(title)}</h1>",
            "<p>One iteration is a pair of lines: the draft, and what the verifier made of it. Tokens are subwords; "
            f"&lt;/s&gt; is the end of the sentence.</p>\n<ul>\n{_LEGEND}\n</ul>",
            *parts,
            "</html>\n",
        ]
    )


def _sentence(trace: Trace) -> str:
    rows = [_row("source", _words(trace.source))]
    prefix: list[str] = []
    for number, part in enumerate(trace.parts, start=1):
        rows += _rows(number, prefix, part)
        prefix += [*part.drafted, *part.own]
    table = "\n".join(["<table>", *rows, _row("output", _words(prefix)), "</table>"])
    return f"<h3>Sentence {trace.number}: {escape(trace.summary)}</h3>\n{table}"


def _rows(number: int, prefix: Sequence[str], part: Segment) -> list[str]:
    before = [f'<span class="p">{_words(prefix)}</span>'] if prefix else []
    accepted = [f'<span class="a">{_words(part.drafted)}</span>'] if part.drafted else []
    thrown = [f'<del class="x">{_words(part.rejected[:1])}</del>'] if part.rejected else []
    thrown += [f"<del>{_words(part.rejected[1:])}</del>"] if part.rejected[1:] else []
    own = [f'<b class="{_OWN[part.step]}">{_words(part.own)}</b>'] if part.own else []
    draft = " ".join([*before, *accepted, *thrown]) if accepted or thrown else "(no draft)"
    return [_row(f"{number} draft", draft, part.note), _row("verified", " ".join([*before, *accepted, *own]))]


def _row(name: str, tokens: str, note: str = "") -> str:
    return f'<tr><th scope="row">{name}</th><td class="t">{tokens}</td><td>{escape(note)}</td></tr>'


def _words(tokens: Iterable[str]) -> str:
    return escape(" ".join(tokens))
