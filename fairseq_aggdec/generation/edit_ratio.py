"""The edit ratio of an output (papers/002 §4.2, Figure 2; papers/000 §4.1.2, Figure 5).

It is the edit distance between input and output, divided by the input's length. The papers do not name the unit; here
both are counted in tokens.
"""

from collections.abc import Hashable, Sequence


def edit_ratio(
    source: Sequence[Hashable],
    output: Sequence[Hashable],
) -> float:
    """Edit distance over source length (papers/000 §4.1.2); for an empty source, the output's length.

    Levenshtein distance: insertions, deletions and substitutions cost one each.
    """
    # row[j]: the distance of what is read of the source to j tokens of the output
    row = list(range(len(output) + 1))
    for token in source:
        diagonal = row[0]
        row[0] += 1
        for j, other in enumerate(output, start=1):
            deleted = row[j] + 1
            inserted = row[j - 1] + 1
            substituted = diagonal + (token != other)
            diagonal = row[j]
            row[j] = min(
                deleted,
                inserted,
                substituted,
            )
    return row[-1] / max(1, len(source))
