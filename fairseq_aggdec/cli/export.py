"""Write weights (half precision), dictionaries and BPE codes of a trained model into one folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq_aggdec.cli.options import argument, option, read
from fairseq_aggdec.errors import on_command_line


@dataclass(kw_only=True)
class Options:
    checkpoint: Path = argument("checkpoint of the trained model")
    folder: Path = argument("folder to write")
    data: Path = option("folder with the dict.*.txt and, if there are any, the BPE codes")
    fp32: bool = option("keep single precision", False)
    without_shared: Path | None = option(
        "leave out the weights that this checkpoint has as well: a drafter with a frozen encoder takes them from its "
        "verifier, and then works with that verifier only",
        None,
        metavar="VERIFIER",
    )
    decoding_block_size: int | None = option(
        "of a drafter: the number of tokens to draft where decoding has no --block-size (default: as in CHECKPOINT)",
        None,
        metavar="K",
    )


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help."""
    given = read(Options, "export", argv, __doc__)
    import torch

    from fairseq_aggdec.checkpoint_tools.exporting import export

    dtype = torch.float32 if given.fp32 else torch.float16
    export(given.checkpoint, given.folder, given.data, dtype, given.without_shared, given.decoding_block_size)
    size = sum(file.stat().st_size for file in given.folder.iterdir())
    print(f"{given.folder}: {size / 1e6:.1f} MB")
