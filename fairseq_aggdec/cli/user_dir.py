"""`aggdec user-dir`: prints the absolute path that `--user-dir` takes in any folder.

fairseq looks for `--user-dir fairseq_aggdec` in the current folder and beside its own package only.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import fairseq_aggdec


def user_dir() -> Path:
    """The path under which Python has imported the package, with which fairseq compares."""
    return Path(fairseq_aggdec.__path__[0]).absolute()


def main(arguments: list[str] | None = None) -> None:
    """Print the path; there are no options but `--help`."""
    parser = argparse.ArgumentParser(
        prog="aggdec user-dir",
        description="Print the folder of the installed plugin.",
        epilog='Example: fairseq-generate data-bin --user-dir "$(aggdec user-dir)" --task aggressive_translation ...',
    )
    parser.parse_args(arguments)
    print(user_dir())


if __name__ == "__main__":
    main()
