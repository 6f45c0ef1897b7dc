"""`aggdec-super-resolve`: greedy, exact and approximate blockwise decoding of images side by side."""

from __future__ import annotations

import argparse
import logging
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_aggdec.errors import AggdecError, on_command_line

if TYPE_CHECKING:
    from fairseq_aggdec.benchmarking.image_decoding import DecodedImages

_ROWS = 6  # images in a picture

_EPILOG = """\
Writes into --output: grid-1.png, grid-2.png, ... (input, greedy, approximate and original side by side), record.json
(times and counters, which aggdec-report reads), quality.json (errors of each image) and table.md.
"""


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help."""
    args = _options(argv)
    logging.basicConfig(level=logging.WARNING)
    import torch

    from fairseq_aggdec import register
    from fairseq_aggdec.benchmarking.image_decoding import Settings, decode, load
    from fairseq_aggdec.benchmarking.machine import describe
    from fairseq_aggdec.files import written_whole

    register()
    if args.threads:
        torch.set_num_threads(args.threads)
    task, model = load(args.path, args.data, args.device)
    settings = Settings(
        args.gen_subset, args.limit, args.block_size or 0, args.accept_distance, args.batch_size, args.repeats
    )
    command = shlex.join(["aggdec-super-resolve", *(sys.argv[1:] if argv is None else argv)])
    decoded = decode(task, model, settings, f"{args.gen_subset} of {args.data} by {args.path}", command)
    record = decoded.record
    record.save(args.output)
    machine = describe(record.record.machine)
    text = f"{record.record.title}; batch size {args.batch_size}; {machine}\n\n{record.table()}\n"
    with written_whole(args.output / "table.md") as partial:
        partial.write_text(text, encoding="utf-8")
    _draw(decoded, args.pictures, args.output)
    print(text, end="")


def _draw(decoded: DecodedImages, count: int, folder: Path) -> None:
    from fairseq_aggdec.benchmarking.image_record import APPROXIMATE, BASELINE
    from fairseq_aggdec.evaluation.image_grid import draw_grid

    small, large = decoded.inputs[0].shape[0], decoded.originals[0].shape[0]
    columns = {
        f"input\n{small} x {small}": decoded.inputs,
        f"greedy\n{large} x {large}": decoded.outputs[BASELINE],
        f"approximate\nwithin {decoded.record.distance:g}": decoded.outputs[APPROXIMATE],
        f"original\n{large} x {large}": decoded.originals,
    }
    for page, first in enumerate(range(0, min(count, len(decoded.inputs)), _ROWS), start=1):
        shown = slice(first, min(first + _ROWS, count))
        draw_grid({label: images[shown] for label, images in columns.items()}, folder / f"grid-{page}.png")


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="aggdec-super-resolve", description=__doc__, epilog=_EPILOG)
    parser.add_argument("data", metavar="DATA", help=".npz file or folder of images")
    parser.add_argument("--path", required=True, help="model with proposal heads, of --task super_resolution")
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="where the results go")
    parser.add_argument("--gen-subset", default="test", help="valid or test (or train); default %(default)s")
    parser.add_argument("--limit", type=int, help="decode the first so many images only")
    parser.add_argument("--block-size", type=int, metavar="K", help="heads used; default: all of the model")
    parser.add_argument(
        "--accept-distance",
        type=float,
        default=2.0,
        metavar="EPSILON",
        help="of approximate decoding: difference of intensities that passes; default %(default)g",
    )
    parser.add_argument("--batch-size", type=int, default=1, help="images decoded at once; default %(default)s")
    parser.add_argument("--repeats", type=int, default=3, help="rounds of which the median counts; default %(default)s")
    parser.add_argument("--pictures", type=int, default=_ROWS, help="images that are drawn; default %(default)s")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, help="of PyTorch on a CPU")
    args = parser.parse_args(argv)
    for name, least in (
        ("limit", 1),
        ("block_size", 1),
        ("batch_size", 1),
        ("repeats", 1),
        ("pictures", 0),
        ("threads", 1),
    ):
        value = getattr(args, name)
        if value is not None and value < least:
            raise AggdecError(f"--{name.replace('_', '-')} {value}: must be at least {least}")
    if not args.accept_distance >= 0:
        raise AggdecError(f"--accept-distance {args.accept_distance}: must be at least 0, which is exact decoding")
    return args


if __name__ == "__main__":
    main()
