"""`python -m fairseq_aggdec.cli.blockwise_table FOLDER`: papers/004 Table 1 and Figure 4 of models with proposal heads.

FOLDER/COLUMN-K.json is what `aggdec bench --modes greedy,blockwise,blockwise:2,blockwise:3 --block-size K --json` wrote
about a model of that column; COLUMN-1.json, greedy alone, about its base model: without it, k = 1 is head 1.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from tabulate import tabulate

from fairseq_aggdec.benchmarking.accepted_blocks import (
    BASELINE,
    by_block_size,
    compared,
    draw_speed,
    mean_accepted_block,
    run_of,
    speed_cell,
)
from fairseq_aggdec.benchmarking.record import Record, load_record
from fairseq_aggdec.cli.markdown_output import add_output_option, machines_of, show
from fairseq_aggdec.errors import AggdecError, on_command_line

COLUMNS = ("regular", "distilled", "fine-tuned", "both")

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
            modes = [BASELINE, "blockwise"] if int(size) > 1 else [BASELINE]
            if not set(modes) <= {run.mode for run in record.runs}:
                raise AggdecError(f"{path}: run aggdec bench with --modes {','.join(modes)}")
            records[column, int(size)] = record
    if not records:
        raise AggdecError(f"{folder}: holds no {COLUMNS[0]}-2.json or the like; measure a model first")
    return records


def quality_table(records: Records) -> str:
    """Returns Table 1: BLEU / mean accepted block, a row each block size, with approximate acceptance below."""
    sizes = sorted({size for _, size in records})
    rows = [["1", *(_cell(_of_any_size(records, column, sizes), BASELINE) for column in COLUMNS)]]
    for mode, note in (("blockwise", ""), ("blockwise:2", ", top-2"), ("blockwise:3", ", top-3")):
        for size in sizes:
            cells = [_cell(records.get((column, size)), mode) for column in COLUMNS]
            if any(cells):
                rows.append([f"{size}{note}", *cells])
    return tabulate(rows, ["k", *COLUMNS], tablefmt="github", disable_numparse=True)


def speed_table(records: Records) -> str:
    """Returns Figure 4 in numbers: speed-up over greedy decoding and, in brackets, mean accepted block."""
    sizes = sorted({size for _, size in records if size > 1})
    return by_block_size(sizes, COLUMNS, lambda *place: speed_cell(compared(records.get(place), "blockwise")))


def draw(records: Records, path: Path) -> None:
    """Draws Figure 4; see `draw_speed`."""
    entries = {place: compared(record, "blockwise") for place, record in records.items()}
    draw_speed({place: entry for place, entry in entries.items() if entry is not None}, COLUMNS, path)


def _of_any_size(records: Records, column: str, sizes: Sequence[int]) -> Record | None:
    """A column's record of the base model, or of heads on it; fine-tuned models have no common one."""
    if column in ("fine-tuned", "both"):
        return None
    return next((records[column, size] for size in sizes if (column, size) in records), None)


def _cell(record: Record | None, mode: str) -> str:
    run = None if record is None else run_of(record, mode)
    if run is None:
        return ""
    accepted = mean_accepted_block(run)
    return f"{accepted:.2f}" if run.bleu is None else f"{run.bleu:.2f} / {accepted:.2f}"


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help."""
    parser = argparse.ArgumentParser(prog="python -m fairseq_aggdec.cli.blockwise_table", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="folder of the measurements, COLUMN-K.json")
    add_output_option(parser)
    parser.add_argument("--figure", type=Path, help="draw speed-up against mean accepted block into this PNG file")
    args = parser.parse_args(argv)
    records = read_records(args.folder)
    runs = [run for record in records.values() for run in record.runs]
    machines = machines_of(records.values())
    sizes = " / ".join(dict.fromkeys(f"{len(run.tokens)} sentences, batch size {run.batch_size}" for run in runs))
    text = (
        f"{sizes}; {machines}\n\nBLEU / mean accepted block\n\n{quality_table(records)}\n\n"
        f"Speed-up over greedy decoding (mean accepted block)\n\n{speed_table(records)}\n"
    )
    show(text, args.output)
    if args.figure:
        draw(records, args.figure)


if __name__ == "__main__":
    main()
