"""`aggdec average DIR --last N --output FILE`: the mean of a training run's last checkpoints, without its optimizer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.cli.options import check_least
from fairseq_aggdec.errors import on_command_line


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help.

    Raises:
        AggdecError: there are too few checkpoints, or they cannot be averaged.
    """
    parser = argparse.ArgumentParser(prog="aggdec average", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder with the checkpoints of one training run")
    parser.add_argument("--last", type=int, default=5, help="number of checkpoints to average (default: 5)")
    parser.add_argument("--output", type=Path, required=True, help="file to write")
    args = parser.parse_args(argv)
    check_least(parser, args, 1, "last")

    from fairseq_aggdec.checkpoint_tools.averaging import last_checkpoints, write_average

    paths = last_checkpoints(args.folder, args.last)
    write_average(paths, args.output)
    print(f"mean of {', '.join(path.name for path in paths)} in {args.output}", file=sys.stderr)


if __name__ == "__main__":
    main()
