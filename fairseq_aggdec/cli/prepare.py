"""`aggdec-prepare CONFIG --data DIR --work DIR`: raw text to fairseq's binary data, by an experiment's prepare.yaml."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.data.preparation import Preparation


def main(argv: Sequence[str] | None = None) -> int:
    """Runs all stages that are not complete; returns the exit status."""
    parser = argparse.ArgumentParser(prog="aggdec-prepare", description=__doc__)
    parser.add_argument("config", type=Path, help="an experiment's prepare.yaml")
    parser.add_argument("--data", type=Path, required=True, help="folder of the given data sets")
    parser.add_argument("--work", type=Path, required=True, help="folder for the experiment's outputs")
    parser.add_argument("--workers", type=int, default=1, help="number of processes")
    args = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        Preparation.from_file(args.config, args.data, args.work, args.workers).run()
    except (OSError, ValueError, RuntimeError) as error:
        print(f"aggdec-prepare: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
