"""`aggdec compare A B`: compares the hypotheses of two fairseq-generate files token by token."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq_aggdec.cli.options import argument, option, read
from fairseq_aggdec.errors import on_command_line


@dataclass(kw_only=True)
class Options:
    first: Path = argument("generate-SUBSET.txt of one decoding", metavar="A")
    second: Path = argument("generate-SUBSET.txt of another decoding", metavar="B")
    show: int = option("most differing sentences to print", 10, least=0)


@on_command_line()
def main(argv: Sequence[str] | None = None) -> int:
    """Prints differing sentences and `identical: N of M`; returns the exit code, 1 if more differs than near-ties.

    Raises:
        AggdecError: the files cannot be compared; nothing is then printed on standard output.
    """
    given = read(Options, "compare", argv, __doc__)
    from fairseq_aggdec.lab.evaluation.comparison import describe, differing, is_near_tie
    from fairseq_aggdec.lab.evaluation.generate_file import read_generate_file

    first, second = read_generate_file(given.first), read_generate_file(given.second)
    different = differing(first, second)
    for index in different[: given.show]:
        print(describe(index, first[index], second[index]))
    near_ties = sum(is_near_tie(first[index], second[index]) for index in different)
    note = f", near-ties: {near_ties}" if near_ties else ""
    print(f"identical: {len(first) - len(different)} of {len(first)}{note}")
    return 1 if len(different) > near_ties else 0


if __name__ == "__main__":
    sys.exit(main())
