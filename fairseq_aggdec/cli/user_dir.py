"""`aggdec user-dir`: the absolute path that `--user-dir` takes in any folder.

fairseq looks for `--user-dir fairseq_aggdec` in the current folder and beside its own package only.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import fairseq_aggdec


def user_dir() -> Path:
    """The path under which Python has imported the package, with which fairseq compares."""
    return Path(fairseq_aggdec.__path__[0]).absolute()


def main(argv: Sequence[str] | None = None) -> None:
    """Print the path; there are no options but `--help`."""
    example = 'Example: fairseq-generate data-bin --user-dir "$(aggdec user-dir)" --task aggressive_translation ...'
    argparse.ArgumentParser(prog="aggdec user-dir", description=__doc__, epilog=example).parse_args(argv)
    print(user_dir())
