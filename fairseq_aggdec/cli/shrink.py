"""Write a checkpoint with some layers of another one, to decode with or to train further (--finetune-from-model)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq_aggdec.cli.options import argument, option, read
from fairseq_aggdec.errors import AggdecError, on_command_line


@dataclass(kw_only=True)
class Options:
    checkpoint: Path = argument("checkpoint of a Transformer or BART model, of any version of fairseq")
    output: Path = argument("file to write")
    encoder_layers_to_keep: str | None = option(
        "numbers from 0, separated by commas, such as 0,2,4 (default: all of the encoder's)", None, metavar="LAYERS"
    )
    decoder_layers_to_keep: str | None = option("the same of the decoder's, such as 0,11", None, metavar="LAYERS")


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help.

    Raises:
        AggdecError: no side is named, the checkpoint cannot be read, or has no such layers.
    """
    given = read(Options, "shrink", argv, __doc__)
    keep = {"encoder": given.encoder_layers_to_keep, "decoder": given.decoder_layers_to_keep}
    if not any(value is not None for value in keep.values()):
        raise AggdecError("give --encoder-layers-to-keep or --decoder-layers-to-keep, or both")
    from fairseq_aggdec.checkpoint_tools.shrinking import shrink_file

    print(shrink_file(given.checkpoint, given.output, keep), file=sys.stderr)


if __name__ == "__main__":
    main()
