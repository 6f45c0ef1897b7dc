"""`aggdec compare A B`: compares the hypotheses of two fairseq-generate files token by token."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.errors import on_command_line
from fairseq_aggdec.lab.evaluation.comparison import describe, differing, is_near_tie
from fairseq_aggdec.lab.evaluation.generate_file import read_generate_file


@on_command_line()
def main(argv: Sequence[str] | None = None) -> int:
    """Prints differing sentences and `identical: N of M`; returns the exit code, 1 if more differs than near-ties.

    Raises:
        AggdecError: the files cannot be compared; nothing is then printed on standard output.
    """
    parser = argparse.ArgumentParser(prog="aggdec compare", description=__doc__)
    parser.add_argument("first", type=Path, metavar="A", help="generate-SUBSET.txt of one decoding")
    parser.add_argument("second", type=Path, metavar="B", help="generate-SUBSET.txt of another decoding")
    parser.add_argument("--show", type=int, default=10, help="most differing sentences to print (default: 10)")
    args = parser.parse_args(argv)
    first, second = read_generate_file(args.first), read_generate_file(args.second)
    different = differing(first, second)
    for index in different[: args.show]:
        print(describe(index, first[index], second[index]))
    near_ties = sum(is_near_tie(first[index], second[index]) for index in different)
    note = f", near-ties: {near_ties}" if near_ties else ""
    print(f"identical: {len(first) - len(different)} of {len(first)}{note}")
    return 1 if len(different) > near_ties else 0


if __name__ == "__main__":
    sys.exit(main())
