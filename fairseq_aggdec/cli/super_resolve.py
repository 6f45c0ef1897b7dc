"""`aggdec super-resolve`: greedy, exact and approximate blockwise decoding of images, side by side."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.cli import options
from fairseq_aggdec.errors import on_command_line

_EPILOG = """\
Writes into --output: record.json (medians and counts, which aggdec report reads), table.md, and pictures.png with
input, greedy output, approximate output and original of an image in a row.
"""


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help."""
    args = _options(argv)
    options.start(args.threads)
    from fairseq_aggdec.files import written_whole
    from fairseq_aggdec.lab.benchmarking.images import Settings, decode, draw, load, table
    from fairseq_aggdec.lab.benchmarking.machine import describe

    task, model = load(args.path, args.data, args.device)
    settings = Settings(
        args.gen_subset, args.limit, args.block_size or 0, args.accept_distance, args.batch_size, args.repeats
    )
    title = f"{args.gen_subset} of {args.data} by {args.path}"
    record, versions = decode(task, model, settings, title, options.command("super-resolve", argv))
    text = f"{record.title}; batch size {args.batch_size}; {describe(record.machine)}\n\n{table(record)}\n"
    print(text, end="")
    with written_whole(args.output / "table.md") as partial:
        partial.write_text(text, encoding="utf-8")
    if args.pictures:
        draw([images[: args.pictures] for images in versions], args.output / "pictures.png")
    record.save(args.output / "record.json")  # last: a folder with it is complete


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="aggdec super-resolve", description=__doc__, epilog=_EPILOG)
    parser.add_argument("data", metavar="DATA", help=".npz file or folder of images")
    parser.add_argument("--path", required=True, help="model with proposal heads, of --task super_resolution")
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="folder for the results")
    parser.add_argument("--gen-subset", default="test", help="valid or test (or train); default %(default)s")
    parser.add_argument("--limit", type=int, help="decode only the first LIMIT images")
    parser.add_argument("--block-size", type=int, metavar="K", help="number of heads used; default: all")
    parser.add_argument(
        "--accept-distance",
        type=float,
        default=2.0,
        metavar="EPSILON",
        help="greatest difference of intensities that approximate decoding accepts; default %(default)g",
    )
    parser.add_argument(
        "--batch-size", type=int, default=1, help="number of images decoded at once; default %(default)s"
    )
    parser.add_argument(
        "--repeats", type=int, default=3, help="number of rounds, whose median time counts; default %(default)s"
    )
    parser.add_argument("--pictures", type=int, default=6, help="number of images drawn; default %(default)s")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, help="number of PyTorch's threads on a CPU")
    args = parser.parse_args(argv)
    options.check_least(parser, args, 1, "limit", "block_size", "batch_size", "repeats", "threads")
    options.check_least(parser, args, 0, "pictures")
    if not args.accept_distance >= 0:
        parser.error(f"--accept-distance {args.accept_distance}: must be at least 0, which is exact decoding")
    return args


if __name__ == "__main__":
    main()
