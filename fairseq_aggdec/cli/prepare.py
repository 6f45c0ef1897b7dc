"""`aggdec prepare CONFIG --data DIR --work DIR`: makes fairseq's binary data, by an experiment's prepare.py."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq_aggdec.cli.options import argument, option, read
from fairseq_aggdec.errors import on_command_line


@dataclass(kw_only=True)
class Options:
    config: Path = argument("an experiment's prepare.py, such as configs/gec_small/prepare.py")
    data: Path = option("folder of the data sets")
    work: Path = option("folder for the experiment's outputs")
    workers: int = option("number of processes", 1, least=1)


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help."""
    given = read(Options, "prepare", argv, __doc__)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    from fairseq_aggdec.data.steps import prepare

    prepare(given.config, given.data, given.work, given.workers)


if __name__ == "__main__":
    main()
