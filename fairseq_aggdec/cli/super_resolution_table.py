"""`python -m fairseq_aggdec.cli.super_resolution_table FOLDER`: papers/004 Table 2 and Figure 4 of image models.

FOLDER/regular-K and FOLDER/fine-tuned-K are what `aggdec super-resolve --block-size K --output` wrote about models with
a frozen and with a fine-tuned base.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.benchmarking.accepted_blocks import BASELINE, by_block_size, draw_speed, speed_cell
from fairseq_aggdec.benchmarking.image_record import APPROXIMATE, EXACT, QUALITY, ImageRecord
from fairseq_aggdec.cli.markdown_output import add_output_option, machines_of, show
from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.evaluation.image_quality import psnr

COLUMNS = {
    "regular": ("regular", EXACT),
    "approximate": ("regular", APPROXIMATE),
    "fine-tuned": ("fine-tuned", EXACT),
    "both": ("fine-tuned", APPROXIMATE),
}
"""of the table: kind of model and mode"""

Records = dict[tuple[str, int], ImageRecord]
"""by kind of model and block size"""


def read_records(folder: Path) -> Records:
    """Reads what has been measured so far.

    Raises:
        AggdecError: nothing has been.
    """
    records: Records = {}
    kinds = {kind for kind, _ in COLUMNS.values()}
    for path in sorted(folder.glob(f"*-*/{QUALITY}")):
        kind, _, size = path.parent.name.rpartition("-")
        if kind in kinds and size.isdigit():
            records[kind, int(size)] = ImageRecord.load(path.parent)
    if not records:
        raise AggdecError(f"{folder}: holds no regular-2/{QUALITY} or the like; run aggdec super-resolve first")
    return records


def tables(records: Records) -> str:
    """Returns the three tables, in Markdown."""
    sizes = sorted({size for _, size in records})

    def accepted(column: str, size: int) -> str:
        kind, mode = COLUMNS[column]
        if size == 1:
            return f"{_any(records, kind).compared(BASELINE).accepted:.2f}" if column == "regular" else ""
        record = records.get((kind, size))
        return "" if record is None else f"{record.compared(mode).accepted:.2f}"

    def speed(column: str, size: int) -> str:
        kind, mode = COLUMNS[column]
        record = records.get((kind, size))
        return "" if record is None else speed_cell(record.compared(mode))

    def quality(column: str, size: int) -> str:
        kind, mode = COLUMNS[column]
        record = _any(records, kind) if size == 1 and column == "regular" else records.get((kind, size))
        if record is None:
            return ""
        entry = record.quality[BASELINE if size == 1 else mode]
        return f"{entry.psnr:.2f} / {entry.identical_share:.1%}"

    enlarged = psnr(next(iter(records.values())).enlarged)
    return (
        f"Mean accepted block\n\n{by_block_size([1, *sizes], tuple(COLUMNS), accepted)}\n\n"
        f"Speed-up over greedy decoding (mean accepted block)\n\n{by_block_size(sizes, tuple(COLUMNS), speed)}\n\n"
        "PSNR in dB / share of pixels that are those of the same model's greedy decoding; bicubic interpolation has "
        f"{enlarged:.2f} dB\n\n{by_block_size([1, *sizes], tuple(COLUMNS), quality)}\n"
    )


def draw(records: Records, path: Path) -> None:
    """Draws Figure 4; see `draw_speed`."""
    entries = {
        (column, size): record.compared(mode)
        for column, (kind, mode) in COLUMNS.items()
        for (name, size), record in records.items()
        if name == kind
    }
    draw_speed(entries, tuple(COLUMNS), path)


def _any(records: Records, kind: str) -> ImageRecord:
    """A record of frozen heads: greedy decoding is the base model's in all; or else of whatever there is."""
    return next((record for (name, _), record in records.items() if name == kind), next(iter(records.values())))


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help."""
    parser = argparse.ArgumentParser(prog="python -m fairseq_aggdec.cli.super_resolution_table", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="folder of the measurements, KIND-K")
    add_output_option(parser)
    parser.add_argument("--figure", type=Path, help="draw speed-up against mean accepted block into this PNG file")
    args = parser.parse_args(argv)
    records = read_records(args.folder)
    runs = [run for record in records.values() for run in record.record.runs]
    machines = machines_of(record.record for record in records.values())
    sizes = " / ".join(dict.fromkeys(f"{len(run.tokens)} images, batch size {run.batch_size}" for run in runs))
    distances = " / ".join(dict.fromkeys(f"ε = {record.distance:g}" for record in records.values()))
    text = f"{sizes}, {distances}; {machines}\n\n{tables(records)}"
    show(text, args.output)
    if args.figure:
        draw(records, args.figure)


if __name__ == "__main__":
    main()
