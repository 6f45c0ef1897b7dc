"""`aggdec-compare A B`: compares the hypotheses of two fairseq-generate files token by token."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.evaluation.generate_file import Generated, read_generate_file


def differing(first: dict[int, Generated], second: dict[int, Generated]) -> list[int]:
    """Returns the numbers of the sentences whose hypotheses differ.

    Raises:
        AggdecError: the files do not hold the same sentences.
    """
    if first.keys() != second.keys():
        missing = sorted(first.keys() ^ second.keys())
        raise AggdecError(
            f"the files hold different sentences: {len(missing)} are in one only, first number {missing[0]}"
        )
    return [index for index in first if first[index].hypothesis != second[index].hypothesis]


def describe(index: int, first: Generated, second: Generated) -> str:
    """Returns both hypotheses with their scores and the position of the first difference.

    Two scores that agree to about 1e-4 show a near-tie, where rounding alone decides.
    """
    tokens = first.hypothesis.split(), second.hypothesis.split()
    same = 0
    while same < min(map(len, tokens)) and tokens[0][same] == tokens[1][same]:
        same += 1
    return (
        f"sentence {index}: differs from token {same} on, scores differ by {abs(first.score - second.score):.6f}\n"
        f"  A {first.score:.6f}\t{first.hypothesis}\n  B {second.score:.6f}\t{second.hypothesis}"
    )


@on_command_line()
def main(argv: Sequence[str] | None = None) -> int:
    """Prints what differs and `identical: N of M`; returns the exit status: 0 if nothing differs, 1 if some do.

    Raises:
        AggdecError: the files cannot be compared (and nothing is printed on standard output).
    """
    parser = argparse.ArgumentParser(prog="aggdec-compare", description=__doc__)
    parser.add_argument("first", type=Path, metavar="A", help="generate-SUBSET.txt of one decoding")
    parser.add_argument("second", type=Path, metavar="B", help="generate-SUBSET.txt of another decoding")
    parser.add_argument("--show", type=int, default=10, help="number of differing sentences to print (default: 10)")
    args = parser.parse_args(argv)
    first, second = read_generate_file(args.first), read_generate_file(args.second)
    different = differing(first, second)
    for index in different[: args.show]:
        print(describe(index, first[index], second[index]))
    print(f"identical: {len(first) - len(different)} of {len(first)}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
