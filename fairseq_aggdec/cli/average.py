"""`aggdec average DIR --last N --output FILE`: the mean of a training run's last checkpoints, without its optimizer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq_aggdec.cli.options import argument, option, read
from fairseq_aggdec.errors import on_command_line


@dataclass(kw_only=True)
class Options:
    folder: Path = argument("folder with the checkpoints of one training run")
    last: int = option("number of checkpoints to average", 5, least=1)
    output: Path = option("file to write")


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help.

    Raises:
        AggdecError: there are too few checkpoints, or they cannot be averaged.
    """
    options = read(Options, "average", argv, __doc__)
    from fairseq_aggdec.checkpoint_tools.averaging import last_checkpoints, write_average

    paths = last_checkpoints(options.folder, options.last)
    write_average(paths, options.output)
    print(f"mean of {', '.join(path.name for path in paths)} in {options.output}", file=sys.stderr)


if __name__ == "__main__":
    main()
