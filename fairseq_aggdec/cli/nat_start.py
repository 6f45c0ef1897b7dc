"""`python -m fairseq_aggdec.cli.nat_start CHECKPOINT ARCHITECTURE --output FILE`: starting weights of a NAT model."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.files import refuse_overwriting, written_whole


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help.

    Raises:
        AggdecError: the checkpoint cannot be read, is of another kind, or would be overwritten.
    """
    import torch

    from fairseq_aggdec.checkpoint_tools.nat_start import TABLES, nat_start
    from fairseq_aggdec.compat.checkpoints import read_checkpoint

    parser = argparse.ArgumentParser(
        prog="nat_start",
        description="Write a checkpoint with a Transformer's weights that fairseq's non-autoregressive models of the "
        "same size take by --finetune-from-model.",
    )
    parser.add_argument("checkpoint", type=Path, help="checkpoint of a Transformer encoder-decoder")
    parser.add_argument("architecture", choices=TABLES)
    parser.add_argument("--output", type=Path, required=True, help="file to write")
    args = parser.parse_args(argv)
    refuse_overwriting(args.output, [args.checkpoint])
    checkpoint = read_checkpoint(args.checkpoint)
    try:
        start = nat_start(checkpoint, args.architecture)
    except AggdecError as error:
        raise AggdecError(f"{args.checkpoint}: {error}") from None
    with written_whole(args.output) as partial:
        torch.save(start, partial)


if __name__ == "__main__":
    main()
