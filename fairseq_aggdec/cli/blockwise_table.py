"""`python -m fairseq_aggdec.cli.blockwise_table FOLDER`: papers/004 Table 1 and Figure 4 of models with proposal heads.

FOLDER/COLUMN-K.json is what `aggdec-bench --modes greedy,blockwise,blockwise:2,blockwise:3 --block-size K --json` wrote
about a model of that column.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from tabulate import tabulate

from fairseq_aggdec.benchmarking.machine import describe
from fairseq_aggdec.benchmarking.record import Record, Run, load_record
from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.files import written_whole

COLUMNS = ("regular", "distilled", "fine-tuned", "both")
_BASELINE = "greedy"

Records = dict[tuple[str, int], Record]
"""by column and block size"""


def read_records(folder: Path) -> Records:
    """Reads what has been measured so far.

    Raises:
        AggdecError: nothing has been, or with other modes.
    """
    records: Records = {}
    for path in sorted(folder.glob("*-*.json")):
        column, _, size = path.stem.rpartition("-")
        if column in COLUMNS and size.isdigit():
            record = load_record(path)
            if not {_BASELINE, "blockwise"} <= {run.mode for run in record.runs}:
                raise AggdecError(f"{path}: run aggdec-bench with --modes {_BASELINE},blockwise")
            records[column, int(size)] = record
    if not records:
        raise AggdecError(f"{folder}: holds no {COLUMNS[0]}-2.json or the like; measure a model first")
    return records


def run_of(record: Record, mode: str) -> Run | None:
    """Returns what a mode did."""
    return next((run for run in record.runs if run.mode == mode), None)


def mean_accepted_block(run: Run) -> float:
    """Returns the mean accepted block (k-hat): tokens that a pass which verifies a block commits.

    All passes do but the first of each sentence, which commits one token and proposes the first block.
    """
    iterations = sum(run.iterations or ())
    sentences = len(run.tokens)
    return (sum(run.tokens) - sentences) / max(1, iterations - sentences)


def quality_table(records: Records) -> str:
    """Returns Table 1: BLEU / mean accepted block, a row each block size, with approximate acceptance below."""
    sizes = sorted({size for _, size in records})
    rows = [["1", *(_cell(_of_any_size(records, column, sizes), _BASELINE) for column in COLUMNS)]]
    for mode, note in (("blockwise", ""), ("blockwise:2", ", top-2"), ("blockwise:3", ", top-3")):
        for size in sizes:
            cells = [_cell(records.get((column, size)), mode) for column in COLUMNS]
            if any(cells):
                rows.append([f"{size}{note}", *cells])
    return tabulate(rows, ["k", *COLUMNS], tablefmt="github", disable_numparse=True)


def speed_table(records: Records) -> str:
    """Returns Figure 4 in numbers: speed-up over greedy decoding and, in brackets, mean accepted block."""
    sizes = sorted({size for _, size in records})
    rows = [[str(size), *(_speed(records.get((column, size))) for column in COLUMNS)] for size in sizes]
    return tabulate(rows, ["k", *COLUMNS], tablefmt="github", disable_numparse=True)


def draw(records: Records, path: Path) -> None:
    """Draws Figure 4: wall-clock speed-up against mean accepted block, a line each column, a point each block size."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.5), layout="constrained")
    axes = figure.add_subplot(xlabel="mean accepted block", ylabel="speed-up over greedy decoding")
    for column, marker in zip(COLUMNS, "os^D", strict=True):
        points = []
        for (name, size), record in sorted(records.items()):
            run, baseline = run_of(record, "blockwise"), run_of(record, _BASELINE)
            if name == column and run is not None and baseline is not None:
                points.append((mean_accepted_block(run), baseline.seconds / run.seconds, size))
        if points:
            accepted, speed, _ = zip(*points, strict=True)
            axes.plot(accepted, speed, marker=marker, label=column)
            for x, y, size in points:
                axes.annotate(f"k={size}", (x, y), textcoords="offset points", xytext=(4, 4), fontsize=7)
    axes.legend(frameon=False)
    with written_whole(path) as partial:
        figure.savefig(partial, format="png", dpi=150)


def _of_any_size(records: Records, column: str, sizes: Sequence[int]) -> Record | None:
    """A column's record whose head 1 is the base model; fine-tuned models have no common one."""
    if column in ("fine-tuned", "both"):
        return None
    return next((records[column, size] for size in sizes if (column, size) in records), None)


def _cell(record: Record | None, mode: str) -> str:
    run = None if record is None else run_of(record, mode)
    if run is None:
        return ""
    accepted = 1.0 if mode == _BASELINE else mean_accepted_block(run)
    return f"{accepted:.2f}" if run.bleu is None else f"{run.bleu:.2f} / {accepted:.2f}"


def _speed(record: Record | None) -> str:
    run, baseline = (None, None) if record is None else (run_of(record, "blockwise"), run_of(record, _BASELINE))
    if run is None or baseline is None:
        return ""
    return f"{baseline.seconds / run.seconds:.2f}x ({mean_accepted_block(run):.2f})"


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help."""
    parser = argparse.ArgumentParser(prog="python -m fairseq_aggdec.cli.blockwise_table", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="folder of the measurements, COLUMN-K.json")
    parser.add_argument("--output", type=Path, help="write the Markdown to this file, too")
    parser.add_argument("--figure", type=Path, help="draw speed-up against mean accepted block into this PNG file")
    args = parser.parse_args(argv)
    records = read_records(args.folder)
    runs = [run for record in records.values() for run in record.runs]
    machines = " / ".join(dict.fromkeys(describe(record.machine) for record in records.values()))
    sizes = " / ".join(dict.fromkeys(f"{len(run.tokens)} sentences, batch size {run.batch_size}" for run in runs))
    text = (
        f"{sizes}; {machines}\n\nBLEU / mean accepted block\n\n{quality_table(records)}\n\n"
        f"Speed-up over greedy decoding (mean accepted block)\n\n{speed_table(records)}\n"
    )
    print(text, end="")
    if args.output:
        with written_whole(args.output) as partial:
            partial.write_text(text, encoding="utf-8")
    if args.figure:
        draw(records, args.figure)


if __name__ == "__main__":
    main()
