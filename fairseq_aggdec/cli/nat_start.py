"""Write a checkpoint with a Transformer's weights that fairseq's non-autoregressive models of its size start from.

`python -m fairseq_aggdec.cli.nat_start CHECKPOINT ARCHITECTURE --output FILE`; they take it by --finetune-from-model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq_aggdec.cli.options import argument, option, read
from fairseq_aggdec.errors import on_command_line


@dataclass(kw_only=True)
class Options:
    checkpoint: Path = argument("checkpoint of a Transformer encoder-decoder")
    architecture: str = argument("nonautoregressive_transformer, cmlm_transformer, levenshtein_transformer, ...")
    output: Path = option("file to write")


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help.

    Raises:
        AggdecError: the checkpoint cannot be read, is of another kind, or would be overwritten.
    """
    given = read(Options, "nat_start", argv, __doc__)
    from fairseq_aggdec.checkpoint_tools.nat_start import write_nat_start

    write_nat_start(given.checkpoint, given.architecture, given.output)


if __name__ == "__main__":
    main()
