"""A record as Markdown: tables computed from its times and counters."""

from collections.abc import Callable, Sequence

from fairseq_aggdec.lab.bench.machine import describe
from fairseq_aggdec.lab.bench.record import BASELINES, PERCENTILES, Record, Run
from fairseq_aggdec.lab.bench.search_settings import as_options
from fairseq_aggdec.lab.grid import text_table

Table = tuple[list[str], list[list[str]]]
"""headers and rows; a line feed in a header is a place where it may be broken"""


def markdown(record: Record) -> str:
    """A header, then for each batch size the tables of speeds and of modules."""
    repeats = record.runs[0].rounds if record.runs else 0
    lines = [
        f"{record.title}, {repeats} rounds",
        describe(record.machine),
        f"command: {record.command}",
        *([f"search: {as_options(record.search)}"] if record.search else []),
        f"commit {record.commit or 'unknown'}, {record.date}",
    ]
    for batch_size in record.batch_sizes:
        runs = record.at(batch_size)
        lines += ["", f"Batch size {batch_size}:", "", text_table(*speed_table(runs))]
        modules = module_table(runs)
        if modules[1]:
            lines += [
                "",
                "Milliseconds a sentence and share, by module:",
                "",
                text_table(*modules),
            ]
    return "\n".join(lines)


Column = tuple[str, Callable[[Run], str]]
"""the header of a column, and the function that gives the cell of a run"""


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _megabytes(count: int | None) -> str:
    return "" if count is None else f"{count / 1e6:.0f}"


def _times(run: Run, of_sentence: bool) -> str:
    """Seconds of a round, or milliseconds of a sentence."""
    unit = 1e3 / run.sentences if of_sentence else 1
    # a demonstration of one sentence takes milliseconds
    digits = 2 if unit * run.seconds >= 0.1 else 4
    return f"{unit * run.seconds:.{digits}f} ({unit * run.fastest:.{digits}f}-{unit * run.slowest:.{digits}f})"


def speed_table(runs: Sequence[Run], short: bool = False) -> Table:
    """Times, speed-ups, counters and number of outputs identical to `greedy`, a row for each mode of one batch size.

    `short`: whether to leave out percentiles, throughput and memory, and to give the times of a sentence.
    """
    unit = "ms a sentence" if short else "seconds"
    columns: list[Column] = [
        (f"{unit}\n(median, range)", lambda run: _times(run, short))
    ]
    columns += [
        _speed_up(baseline)
        for name in BASELINES
        for baseline in runs
        if baseline.mode == name
    ]
    if not short:
        columns += [_latency(share) for share in PERCENTILES]
        columns.append(
            ("tokens\nper second", lambda run: f"{run.tokens_per_second:.0f}")
        )
    columns += [
        ("iterations\nper sentence", lambda run: _number(run.mean_iterations, 2)),
        ("mean accepted\ntokens", lambda run: _number(run.mean_accepted_tokens, 2)),
        ("identical\nto greedy", identical_to_greedy),
    ]
    optional: list[Column] = [
        ("BLEU", lambda run: _number(run.bleu, 2)),
        ("longest\ndraft", lambda run: _number(run.longest_draft or None, 0)),
        ("peak memory\nMB", lambda run: _megabytes(run.host_bytes)),
        ("on the device\nMB", lambda run: _megabytes(run.device_bytes)),
    ]
    if not short:
        columns += [
            column for column in optional if any(column[1](run) for run in runs)
        ]
    return ["mode", *(header for header, _ in columns)], [
        [run.mode, *(cell(run) for _, cell in columns)] for run in runs
    ]


def _latency(share: int) -> Column:
    return (f"p{share}\nms", lambda run: f"{1e3 * run.percentiles[str(share)]:.1f}")


def _speed_up(baseline: Run) -> Column:
    return (
        f"speed-up\nover {baseline.mode}",
        lambda run: f"{baseline.seconds / run.seconds:.2f}x",
    )


def identical_to_greedy(run: Run) -> str:
    """Number of outputs identical to those of `greedy`; a precision is named where that was decoded in another one."""
    if run.identical is None:
        return ""
    note = "" if run.compared_with == run.precision else f" ({run.compared_with})"
    if run.near_ties:
        note += f" ({run.near_ties} near-tie{'s' * (run.near_ties > 1)})"
    return f"{run.identical} of {run.sentences}{note}"


def module_table(runs: Sequence[Run]) -> Table:
    """Milliseconds per sentence and share of the time, by module (papers/000 Table 15)."""
    profiled = [(run, run.modules) for run in runs if run.modules]
    modules = list(dict.fromkeys(module for _, times in profiled for module in times))
    rows = []
    for run, times in profiled:
        total, sentences = sum(times.values()), run.sentences
        cells = [
            f"{1e3 * times[m] / sentences:.2f} ({times[m] / total:.0%})"
            if m in times
            else ""
            for m in modules
        ]
        rows.append([run.mode, *cells])
    return ["mode", *modules], rows
