"""Compares two records of `aggdec bench` of the same sentences: times, and where the same drafts took other iterations.

`python configs/shared/measuring/compare_counts.py RECORD RECORD`. Only near-ties may differ.
"""

import json
import sys
from pathlib import Path

COUNTS = ("iterations", "drafted", "accepted")


def main(*paths: str) -> None:
    """Print a line for each mode and batch size."""
    first, second = (
        json.loads(Path(path).read_text(encoding="utf-8"))["runs"] for path in paths
    )
    for one, other in zip(first, second, strict=True):
        times = ", ".join(
            f"{run['times']['seconds'] / run['counts']['sentences'] * 1e3:.2f}"
            for run in (one, other)
        )
        differing = [
            name
            for name in COUNTS
            if one["counts"].get(name) != other["counts"].get(name)
        ]
        print(
            f"{one['mode']} x {one['batch_size']}: {times} ms a sentence",
            *[f"{name} DIFFER" for name in differing],
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
