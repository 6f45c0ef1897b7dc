"""`aggdec prepare CONFIG --data DIR --work DIR`: makes fairseq's binary data, by an experiment's prepare.py."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.cli.options import check_least
from fairseq_aggdec.errors import on_command_line


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help.

    Raises:
        AggdecError: the configuration or the data cannot be used.
    """
    parser = argparse.ArgumentParser(prog="aggdec prepare", description=__doc__)
    parser.add_argument("config", type=Path, help="an experiment's prepare.py, such as configs/gec_small/prepare.py")
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--work", type=Path, required=True, help="folder for the experiment's outputs")
    parser.add_argument("--workers", type=int, default=1, help="number of processes")
    args = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    check_least(parser, args, 1, "workers")
    from fairseq_aggdec.data.steps import prepare

    prepare(args.config, args.data, args.work, args.workers)


if __name__ == "__main__":
    main()
