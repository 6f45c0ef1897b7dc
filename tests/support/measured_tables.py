"""Tables and pictures of README and docs out of the records in docs and of the code, so that nobody types them.

A page holds a table between two comments, `<!-- figures: KIND NAME... -->` and `<!-- end of figures -->`. A record is
named with its commit, as in `name.json` (commit 0123456789ab), which is kept up to date, too.

    python -m tests.support.measured_tables       after a measurement, or for a new mode or option: writes them anew
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path

from fairseq_aggdec.errors import AggdecError, option_name
from fairseq_aggdec.generation.modes import MODES, readers
from fairseq_aggdec.generation.options import Decoding, name_of
from fairseq_aggdec.lab.bench.record import Record, Run, load_record
from fairseq_aggdec.lab.bench.tables import Table
from fairseq_aggdec.lab.grid import text_table
from tests.support.pictures import pictures

ROOT = Path(__file__).resolve().parents[2]
RECORDS = sorted((ROOT / "docs" / "benchmarks").glob("*.json"))
PAGES = (
    "README.md",
    "docs/options.md",
    "docs/measurements.md",
    "docs/aggressive-beam.md",
    "docs/verify.md",
    "docs/papers.md",
)
_BLOCK = re.compile(
    r"(<!-- figures: (.*?) -->\n).*?(<!-- end of figures -->)", re.DOTALL
)
_COMMIT = re.compile(r"(`([\w-]+)\.json`\s\(commit\s)[0-9a-f]{12}\)")
_PLAIN = "aggressive-beam:5:0"
_AHEAD = "aggressive-beam:5"


@cache
def _record(name: str) -> Record:
    return load_record(ROOT / "docs" / "benchmarks" / f"{name}.json")


def _runs(name: str, batch_size: int = 1) -> dict[str, Run]:
    return {run.mode: run for run in _record(name).at(batch_size)}


def _faster(run: Run | None, baseline: Run | None, digits: int = 2) -> str:
    return f"{run.speed_up_over(baseline):.{digits}f}x" if run and baseline else ""


def _seconds(run: Run) -> str:
    times = run.times
    return f"{times.seconds:.2f} s ({times.fastest:.2f}-{times.slowest:.2f})"


def _parts(names: Sequence[str]) -> Iterator[list[str]]:
    """The parts of arguments such as RECORD=MODE=LABEL; underscores of all but the record are spaces."""
    for argument in names:
        record, *others = argument.split("=")
        yield [record, *(part.replace("_", " ") for part in others)]


def promise(name: str) -> str:
    """README's second sentence, by a record of the corrector."""
    record = _record(name)
    runs = _runs(name)
    ours = runs["iad"]
    theirs = runs["beam1"]
    return (
        f"On {record.machine['threads']} threads of an {record.machine['processor']}, in fp32, the shipped corrector "
        f"takes {_milliseconds(ours)} ms a sentence with `--decoding iad`; fairseq's search with the same output takes "
        f"{_milliseconds(theirs)} ms, {_faster(ours, theirs, 1)[:-1]} times as long "
        f"(`bash scripts/measure.sh work/benchmarks {name}`)."
    )


def headline(*names: str) -> Table:
    """README's: each RECORD=MODE=LABEL is a row. Drafts are compared with `greedy`, or with the plain beam search."""
    rows = []
    for name, mode, label in _parts(names):
        runs = _runs(name)
        has_beam = mode == _AHEAD
        stock = runs["beam5" if has_beam else "beam1"]
        plain = runs[_PLAIN if has_beam else "greedy"]
        ours = runs[mode]
        saves_passes = ours.counts.iterations != plain.counts.iterations
        rows.append(
            [
                f"`{mode.partition(':')[0]}`, {label}",
                "beam 5, all hypotheses" if has_beam else "beam 1",
                _milliseconds(ours),
                f"**{_faster(ours, stock, 1)}**",
                _faster(ours, plain) if saves_passes else "none",
            ]
        )
    return [
        "mode",
        "output of fairseq's",
        "ms a sentence",
        "over fairseq's search of the same output",
        "of which by drafts",
    ], rows


def beside(*names: str) -> Table:
    """Ours beside a paper's: each RECORD=MODE=LABEL=PAPER'S OVER BEAM 5=PAPER'S OVER BEAM 1 is a row."""
    rows = []
    for name, mode, label, over_beam, over_one in _parts(names):
        runs = _runs(name)
        gains = [
            _faster(runs[mode], runs[baseline], 1) for baseline in ("beam5", "beam1")
        ]
        tokens = f"{runs[mode].counts.mean_accepted_tokens:.2f}"
        rows.append(
            [
                label,
                over_beam,
                gains[0],
                over_one,
                gains[1],
                _faster(runs[mode], runs["greedy"]),
                tokens,
            ]
        )
    heads = ["", "over beam 5: paper", "here", "over beam 1: paper", "here"]
    return [*heads, "over `greedy`, here", "tokens an iteration, here"], rows


def modes(name: str) -> Table:
    """The modes of a record, one sentence at a time, with their decoder passes and BLEU."""
    runs = _runs(name)
    rows = [
        [
            f"`{mode}`", _per_sentence(run), _faster(run, runs["beam5"]), _faster(run, runs["greedy"]),
            f"{run.counts.mean_iterations:.2f}" if run.counts.iterations else "",
            f"{run.counts.bleu:.2f}",
        ]
        for mode, run in runs.items()
    ]  # fmt: skip
    return [
        "mode",
        "milliseconds a sentence (range)",
        "over beam 5",
        "over `greedy`",
        "passes",
        "BLEU",
    ], rows


def batches(*names: str) -> Table:
    """Speed over `greedy` in batches: each RECORD=MODE=LABEL is a row."""
    rows = []
    for record, mode, label in _parts(names):
        cells = []
        for size in (8, 32):  # alone: `headline`, of another machine
            runs = _runs(record, size)
            cells.append(_faster(runs[mode], runs["greedy"]))
        rows.append([label, *cells])
    return ["batch size", "8", "32"], rows


def milliseconds(*names: str) -> Table:
    """Of a sentence, a column for each RECORD=LABEL at batch size 1, or RECORD=LABEL=SIZE."""
    columns = {
        label: _runs(name, *map(int, size)) for name, label, *size in _parts(names)
    }
    rows = []
    for mode in dict.fromkeys(mode for runs in columns.values() for mode in runs):
        cells = []
        for runs in columns.values():
            times = _per_sentence(runs.get(mode))
            faster = _faster(runs.get(mode), runs.get("beam5"))
            cells.append(f"{times}: {faster}" if faster else times)
        rows.append([f"`{mode}`", *cells])
    return ["milliseconds a sentence (range): over fairseq beam 5", *columns], rows


def _per_sentence(run: Run | None) -> str:
    if run is None:
        return ""
    return f"{_milliseconds(run)} ({_milliseconds(run, run.times.fastest)}-{_milliseconds(run, run.times.slowest)})"


def _milliseconds(run: Run, seconds: float | None = None) -> str:
    """Of a sentence, where all take `seconds`, by default the median; the median decides the digits."""
    digits = 0 if run.times.seconds >= 0.02 * run.counts.sentences else 1
    return f"{1e3 * (seconds or run.times.seconds) / run.counts.sentences:,.{digits}f}"


def beams(*names: str) -> Table:
    """Beam 5 by fairseq and by this plugin, rows for each RECORD=LABEL."""
    rows = []
    for name, label in _parts(names):
        for size in _record(name).batch_sizes:
            runs = _runs(name, size)
            stock = runs["beam5"]
            ahead = runs[_AHEAD]
            plain = runs[_PLAIN]
            rows.append([
                label, str(size), _seconds(stock), _faster(plain, stock), _seconds(ahead),
                f"**{_faster(ahead, stock)}**", _faster(runs.get(f"{_AHEAD}@int8"), stock),
                *(_faster(runs.get(f"ctranslate2:beam5{precision}"), stock) for precision in ("", "@int8")),
                f"{plain.counts.mean_iterations:.1f}", f"{ahead.counts.mean_iterations:.1f}",
                str(ahead.counts.differing or 0),
            ])  # fmt: skip
    return [
        "", "batch size", "fairseq beam 5", "plain", "`aggressive-beam`", "faster", "`--int8`",
        "CTranslate2", "CTranslate2, int8", "steps a sentence", "passes", "lists that differ",
    ], rows  # fmt: skip


def verified(*names: str) -> Table:
    """Runs of `aggdec verify`, from docs/verify; outputs are counted once for each mode, precision and batch size."""
    rows = []
    for name in names:
        record = json.loads(
            (ROOT / "docs" / "verify" / f"{name}.json").read_text("utf-8")
        )
        checks = [check for check in record["checks"] if check["lossless"]]
        modes, precisions = (
            ", ".join(dict.fromkeys(c[what] for c in checks))
            for what in ("mode", "precision")
        )
        totals = {
            what: sum(check[what] or 0 for check in checks)
            for what in ("sentences", "identical", "near_ties", "differing", "accepted")
        }
        rows.append([
            f"[{name}](verify/{name}.json)", str(checks[0]["sentences"]), modes, precisions,
            f"{totals['identical']} of {totals['sentences']}", str(totals["near_ties"]), str(totals["differing"]),
            f"{totals['accepted']:,}", f"`{record['commit']}`",
        ])  # fmt: skip
    return [
        "record", "sentences", "lossless modes", "precisions", "outputs as the reference's", "near-ties", "differing",
        "accepted draft tokens", "commit",
    ], rows  # fmt: skip


def decodings() -> Table:
    """The values of --decoding."""
    return ["option", "meaning"], [
        [f"`--decoding {name}`", mode.help] for name, mode in MODES.items()
    ]


def options() -> Table:
    """The options of this plugin, but for --decoding."""
    own = [option for option in fields(Decoding)[1:] if "help" in option.metadata]
    rows = [
        [
            f"`{option_name(name_of(option))}`",
            ", ".join(readers(option.name)) or "all modes",
            option.metadata["help"],
        ]
        for option in own
    ]
    return ["option", "read by", "meaning"], rows


KINDS: dict[str, Callable[..., Table | str]] = {
    "promise": promise,
    "headline": headline,
    "beside": beside,
    "modes": modes,
    "batches": batches,
    "milliseconds": milliseconds,
    "beams": beams,
    "verified": verified,
    "decodings": decodings,
    "options": options,
}


def filled(page: str) -> str:
    """The page with its tables as the records have them, and the records' commits."""

    def table(match: re.Match[str]) -> str:
        kind, *names = match[2].split()
        if kind not in KINDS:
            raise AggdecError(
                f"<!-- figures: {match[2]} -->: {kind} is none of {', '.join(KINDS)}"
            )
        made = KINDS[kind](*names)
        if isinstance(made, str):
            return f"{match[1]}{made}\n{match[3]}"
        return f"{match[1]}\n{text_table(*made)}\n\n{match[3]}"

    return _COMMIT.sub(
        lambda match: f"{match[1]}{(_record(match[2]).commit or '')[:12]})",
        _BLOCK.sub(table, page),
    )


def main(pages: Sequence[str] = PAGES) -> None:
    """Write the tables of all pages anew, or, where a record or a kind is misspelt, none."""
    texts = {name: filled((ROOT / name).read_text("utf-8")) for name in pages}
    for name, text in {**texts, **pictures()}.items():
        (ROOT / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
