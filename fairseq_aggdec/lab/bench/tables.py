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
    repeats = record.runs[0].times.rounds if record.runs else 0
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


def _times(run: Run, of_sentence: bool) -> str:
    """Seconds of a round, or milliseconds of a sentence."""
    times = run.times
    unit = 1e3 / run.counts.sentences if of_sentence else 1
    # a demonstration of one sentence takes milliseconds
    digits = 2 if unit * times.seconds >= 0.1 else 4
    median, least, most = (
        f"{unit * seconds:.{digits}f}"
        for seconds in (times.seconds, times.fastest, times.slowest)
    )
    return f"{median} ({least}-{most})"


def speed_table(runs: Sequence[Run], short: bool = False) -> Table:
    """Times, speed-ups, counters and how many outputs are `greedy`'s, a row for each mode of one batch size.

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
        columns.append(("tokens\nper second", _tokens_per_second))
    columns += [
        _count("iterations\nper sentence", "mean_iterations", 2),
        _count("mean accepted\ntokens", "mean_accepted_tokens", 2),
        ("identical\nto greedy", identical_to_greedy),
    ]
    optional: list[Column] = [
        _count("BLEU", "bleu", 2),
        _count("longest\ndraft", "longest_draft", 0),
        _count("peak memory\nMB", "host_bytes", 0, 1e6),
        _count("on the device\nMB", "device_bytes", 0, 1e6),
    ]
    if not short:
        columns += [
            column for column in optional if any(column[1](run) for run in runs)
        ]
    return ["mode", *(header for header, _ in columns)], [
        [run.mode, *(cell(run) for _, cell in columns)] for run in runs
    ]


def _tokens_per_second(run: Run) -> str:
    """Output tokens per second, EOS counted."""
    return f"{run.counts.tokens / run.times.seconds:.0f}"


def _count(header: str, name: str, digits: int, unit: float = 1) -> Column:
    """A column of a field of `Counts`, empty where it was not counted, or where nothing whole was."""

    def cell(run: Run) -> str:
        value = getattr(run.counts, name)
        is_empty = value is None or (digits == 0 and value == 0)
        return "" if is_empty else f"{value / unit:.{digits}f}"

    return header, cell


def _latency(share: int) -> Column:
    return (
        f"p{share}\nms",
        lambda run: f"{1e3 * run.times.percentiles[str(share)]:.1f}",
    )


def _speed_up(baseline: Run) -> Column:
    return (
        f"speed-up\nover {baseline.mode}",
        lambda run: f"{run.speed_up_over(baseline):.2f}x",
    )


def identical_to_greedy(run: Run) -> str:
    """How many outputs are those of `greedy`; a precision is named where that was decoded in another one."""
    counts = run.counts
    if counts.identical is None:
        return ""
    note = "" if counts.compared_with == run.precision else f" ({counts.compared_with})"
    if counts.near_ties:
        note += f" ({counts.near_ties} near-tie{'s' * (counts.near_ties > 1)})"
    return f"{counts.identical} of {counts.sentences}{note}"


def module_table(runs: Sequence[Run]) -> Table:
    """Milliseconds per sentence and share of the time, by module (papers/000 Table 15)."""
    profiled = [(run, run.times.modules) for run in runs if run.times.modules]
    modules = list(dict.fromkeys(module for _, times in profiled for module in times))
    rows = []
    for run, times in profiled:
        total = sum(times.values())
        cells = [
            f"{1e3 * times[module] / run.counts.sentences:.2f} ({times[module] / total:.0%})"
            if module in times
            else ""
            for module in modules
        ]
        rows.append([run.mode, *cells])
    return ["mode", *modules], rows
