"""`aggdec shrink CHECKPOINT OUTPUT`: a shallow model out of a deep one, such as 12+2 layers out of BART-large."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.errors import on_command_line


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help.

    Raises:
        AggdecError: the checkpoint cannot be read, or has no such layers.
    """
    parser = argparse.ArgumentParser(
        prog="aggdec shrink",
        description="Write a checkpoint with some layers of another one, to decode with, and to train further with "
        "--finetune-from-model.",
    )
    parser.add_argument(
        "checkpoint", type=Path, help="checkpoint of a Transformer or BART model, of any version of fairseq"
    )
    parser.add_argument("output", type=Path, help="file to write")
    for side, example in (("encoder", "0,2,4"), ("decoder", "0,11")):
        parser.add_argument(
            f"--{side}-layers-to-keep",
            metavar="LAYERS",
            help=f"numbers from 0, separated by commas, such as {example} (default: all of the {side}'s)",
        )
    args = parser.parse_args(argv)
    keep = {"encoder": args.encoder_layers_to_keep, "decoder": args.decoder_layers_to_keep}
    if not any(value is not None for value in keep.values()):
        parser.error("give --encoder-layers-to-keep or --decoder-layers-to-keep, or both")

    from fairseq_aggdec.checkpoint_tools.shrinking import shrink_file

    print(shrink_file(args.checkpoint, args.output, keep), file=sys.stderr)


if __name__ == "__main__":
    main()
