"""`aggdec export CHECKPOINT FOLDER --data DATA-BIN`: a trained model as a small folder that needs nothing else."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.errors import on_command_line


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help."""
    parser = argparse.ArgumentParser(
        prog="aggdec export",
        description="Write weights (half precision), dictionaries and BPE codes of a trained model into one folder.",
    )
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("folder", type=Path, help="folder to write")
    parser.add_argument(
        "--data", type=Path, required=True, help="folder with the dict.*.txt and, if there are any, the BPE codes"
    )
    parser.add_argument("--fp32", action="store_true", help="keep single precision")
    parser.add_argument(
        "--without-shared",
        type=Path,
        metavar="VERIFIER",
        help="leave out the weights that this checkpoint has as well: a drafter with a frozen encoder takes them from "
        "its verifier, and then works with that verifier only",
    )
    parser.add_argument(
        "--decoding-block-size",
        type=int,
        metavar="K",
        help="of a drafter: how many tokens are drafted where decoding has no --block-size (default: as in CHECKPOINT)",
    )
    args = parser.parse_args(argv)

    import torch

    from fairseq_aggdec.checkpoint_tools.exporting import export

    dtype = torch.float32 if args.fp32 else torch.float16
    export(args.checkpoint, args.folder, args.data, dtype, args.without_shared, args.decoding_block_size)
    size = sum(file.stat().st_size for file in args.folder.iterdir())
    print(f"{args.folder}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
