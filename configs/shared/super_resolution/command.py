"""`aggdec super-resolve`: greedy, exact and approximate blockwise decoding of images, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fairseq_aggdec.cli import options
from fairseq_aggdec.cli.options import argument, option
from fairseq_aggdec.errors import on_command_line

_EPILOG = """\
Writes into --output: record.json (medians and counts, which aggdec report reads), table.md, and pictures.png with
input, greedy output, approximate output and original of an image in a row.
"""


@dataclass(kw_only=True)
class Options:
    data: str = argument(".npz file or folder of images", metavar="DATA")
    path: str = option("model with proposal heads, of --task super_resolution")
    output: Path = option("folder for the results", metavar="FOLDER")
    gen_subset: str = option("valid or test (or train)", "test")
    limit: int | None = option("decode only the first LIMIT images", None, least=1)
    block_size: int | None = option("number of heads used (default: all)", None, least=1, metavar="K")
    accept_distance: float = option(
        "greatest difference of intensities that approximate decoding accepts", 2.0, least=0, metavar="EPSILON"
    )
    batch_size: int = option("number of images decoded at once", 1, least=1)
    repeats: int = option("number of rounds, whose median time counts", 3, least=1)
    pictures: int = option("number of images drawn", 6, least=0)
    device: Literal["cpu", "cuda"] = option("where to decode", "cpu")
    threads: int | None = option("number of PyTorch's threads on a CPU", None, least=1)


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help."""
    args = options.read(Options, "super-resolve", argv, __doc__, epilog=_EPILOG)
    options.start(args.threads, args.path)
    from fairseq_aggdec.files import written_whole
    from fairseq_aggdec.lab.bench.machine import describe

    from .decoding import decode, draw, load, table

    task, model = load(args.path, args.data, args.device)
    record, versions = decode(task, model, args, options.command("super-resolve", argv))
    text = f"{record.title}; batch size {args.batch_size}; {describe(record.machine)}\n\n{table(record)}\n"
    print(text, end="")
    with written_whole(args.output / "table.md") as partial:
        partial.write_text(text, encoding="utf-8")
    if args.pictures:
        draw([images[: args.pictures] for images in versions], args.output / "pictures.png")
    record.save(args.output / "record.json")  # last: a folder with it is complete
