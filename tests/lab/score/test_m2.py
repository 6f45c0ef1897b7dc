"""M2: files of gold edits, the lattice of an output's edits, and the counts of the official scorer."""

import gzip
from functools import cache
from itertools import product
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.score.edit_lattice import edit_lattice
from fairseq_aggdec.lab.score.m2_file import Edit, M2Sentence, read_m2
from fairseq_aggdec.lab.score.m2_score import M2Counts, corpus_m2, edits_from_references

EXAMPLE = """S The cat sat at mat .
A 3 4|||Prep|||on|||REQUIRED|||-NONE-|||0
A 4 4|||ArtOrDet|||the||a|||REQUIRED|||-NONE-|||0

S The dog .
A 1 2|||NN|||dogs|||REQUIRED|||-NONE-|||0
A -1 -1|||noop|||-NONE-|||-NONE-|||-NONE-|||1

S Giant otters is an apex predator .
A 2 3|||SVA|||are|||REQUIRED|||-NONE-|||0
A 3 4|||ArtOrDet|||-NONE-|||REQUIRED|||-NONE-|||0
A 5 6|||NN|||predators|||REQUIRED|||-NONE-|||0
A 1 2|||NN|||otter|||REQUIRED|||-NONE-|||1
"""
"""the official scorer's example; its manual works out the result"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_annotators_have_edits_and_gzipped_files_comments_and_blank_lines(
    tmp_path: Path,
) -> None:
    cat, dog, otters = read_m2(write(tmp_path / "gold.m2", EXAMPLE))
    assert cat == M2Sentence(
        tuple("The cat sat at mat .".split()),
        {0: (Edit(3, 4, ("on",)), Edit(4, 4, ("the", "a")))},
    )
    assert dog.annotators == {0: (Edit(1, 2, ("dogs",)),), 1: ()}
    assert otters.annotators[0][1] == Edit(3, 4, ("",))  # -NONE- deletes
    assert set(otters.annotators) == {0, 1}
    path = tmp_path / "gold.m2.gz"
    path.write_bytes(
        gzip.compress(
            b"\n\nS a b\nI note\nA 0 1|||x||||||REQUIRED|||-NONE-|||3\n\n\n\nS c"
        )
    )
    first, second = read_m2(path)
    # an empty correction deletes too
    assert first.annotators == {3: (Edit(0, 1, ("",)),)}
    # without annotators: one who changes nothing
    assert second == M2Sentence(("c",), {0: ()})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no sentences"),
        ("S a\nS b\n", "line 2: after a sentence come 'A ' lines"),
        ("S a\nA 0 1|||x|||y|||REQUIRED|||-NONE-|||me\n", "line 2: not an edit"),
    ],
)
def test_what_is_no_m2_is_refused_with_its_line(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(AggdecError, match=f"gold.m2.*{message}"):
        read_m2(write(tmp_path / "gold.m2", text))


def test_characters(tmp_path: Path) -> None:
    text = "S 我 喜欢 吃 平果\nA 1 2|||x|||很 爱|||REQUIRED|||-NONE-|||0\nA 3 4|||x|||苹果|||REQUIRED|||-NONE-|||0\n"
    (sentence,) = read_m2(write(tmp_path / "gold.m2", text))
    edits = (Edit(1, 3, ("很 爱",)), Edit(4, 6, ("苹 果",)))
    assert sentence.in_characters() == M2Sentence(tuple("我喜欢吃平果"), {0: edits})


SYSTEM = ["A cat sat on the mat .", "The dog .", "Giant otters are apex predator ."]


def test_the_official_manuals_example(tmp_path: Path) -> None:
    # Four right edits, one needless (The -> A), one missing (predator -> predators): 0.8 of each.
    counts = corpus_m2(
        [line.split() for line in SYSTEM], read_m2(write(tmp_path / "gold.m2", EXAMPLE))
    )
    assert counts == M2Counts(correct=4, proposed=5, gold=5)
    assert (counts.precision, counts.recall, round(counts.f, 9)) == (0.8, 0.8, 0.8)


def test_the_annotator_is_chosen_for_the_corpus_so_far() -> None:
    # Against 0 the output has 1 of 1 right of 3 gold edits, against 1 none of 1 right, of 1. After a good beginning
    # F0.5 is higher with the right edit.
    source = "a b c d e f g".split()
    gold = tuple(Edit(at, at + 1, ("x",)) for at in (0, 3, 6))
    sentence = M2Sentence(tuple(source), {0: gold, 1: (Edit(1, 2, ("y",)),)})
    assert corpus_m2([["x", *source[1:]]], [sentence]) == M2Counts(1, 1, 3)
    # The unchanged source scores best where nobody wants anything.
    assert corpus_m2(
        [source], [M2Sentence(tuple(source), {0: gold, 4: ()})]
    ) == M2Counts(0, 0, 0)


def test_edits_from_references() -> None:
    (sentence,) = edits_from_references(
        [["a", "b", "c", "d"]], [[["a", "x", "c"]], [["a", "b", "c", "d"]]]
    )
    assert sentence.annotators == {0: (Edit(1, 2, ("x",)), Edit(3, 4, ("",))), 1: ()}
    # each reference is perfect against its own edits
    assert corpus_m2([["a", "x", "c"]], [sentence]) == M2Counts(2, 2, 2)


def applied(sentence: M2Sentence, annotator: int) -> list[str]:
    output: list[str] = []
    at = 0
    for edit in sentence.annotators[annotator]:
        output += [*sentence.tokens[at : edit.start], *edit.corrections[0].split()]
        at = edit.end
    return [*output, *sentence.tokens[at:]]


def test_an_official_file(aggdec_data: Path) -> None:
    """Two annotators' own corrections and the source itself, counted as by the official scorer, in seconds.

    It misses one of two gold edits that meet (`,` before and after a changed word), so do we.
    """
    sentences = read_m2(aggdec_data / "ua-gec" / "gec-only.test.m2.gz")[:500]
    began = process_time()
    first, second = (
        corpus_m2([applied(sentence, n) for sentence in sentences], sentences)
        for n in (0, 1)
    )
    assert (first, second) == (M2Counts(411, 412, 412), M2Counts(526, 527, 527))
    unchanged = corpus_m2([sentence.tokens for sentence in sentences], sentences)
    assert (unchanged.precision, unchanged.recall, unchanged.f) == (1, 0, 0)
    assert process_time() - began < 30  # 2 s on an idle core


Cell = tuple[int, int]
TOKENS = st.lists(st.sampled_from("ab"), max_size=4)


def shortest_steps(
    source: list[str], output: list[str], substitution: int
) -> set[tuple[Cell, Cell]]:
    """All steps that are on a shortest path."""

    def steps_from(i: int, j: int) -> list[tuple[Cell, int]]:
        can_delete, can_insert = i < len(source), j < len(output)
        steps = [((i + 1, j), 1)] * can_delete + [((i, j + 1), 1)] * can_insert
        if can_delete and can_insert:
            steps.append(
                ((i + 1, j + 1), 0 if source[i] == output[j] else substitution)
            )
        return steps

    @cache
    def left(cell: Cell) -> int:
        return min((cost + left(after) for after, cost in steps_from(*cell)), default=0)

    found, reached = set(), {(0, 0)}
    for cell in product(range(len(source) + 1), range(len(output) + 1)):
        for after, cost in steps_from(*cell) if cell in reached else ():
            if left(cell) == cost + left(after):
                found.add((cell, after))
                reached.add(after)
    return found


def slow_arcs(
    source: list[str], output: list[str], most: int
) -> dict[tuple[Cell, Cell], tuple[int, int]]:
    """Arcs with their steps and unchanged tokens."""
    steps = shortest_steps(source, output, 1) | shortest_steps(source, output, 2)
    cells = sorted({cell for step in steps for cell in step} | {(0, 0)})
    arcs = {}
    for (i, j), (i2, j2) in steps:
        arcs[(i, j), (i2, j2)] = (1, int(i2 > i and j2 > j and source[i] == output[j]))
    for middle, before, after in product(cells, repeat=3):
        if (before, middle) in arcs and (middle, after) in arcs:
            length, kept = (
                sum(pair)
                for pair in zip(arcs[before, middle], arcs[middle, after], strict=True)
            )
            if (
                length < arcs.get((before, after), (float("inf"), 0))[0]
                and kept <= most
            ):
                arcs[before, after] = (length, kept)
    return {
        arc: (length, kept)
        for arc, (length, kept) in arcs.items()
        if not length == kept > 1
    }


@settings(max_examples=60, deadline=None)
@given(source=TOKENS, output=TOKENS, most=st.integers(0, 3))
def test_same_arcs_as_the_slow_way(
    source: list[str], output: list[str], most: int
) -> None:
    slow = slow_arcs(source, output, most)
    cells = sorted({cell for arc in slow for cell in arc} | {(0, 0)})
    lattice = edit_lattice(source, output, most)
    assert len(lattice) == len(cells)
    fast = {
        (cells[arc.origin], cells[arc.target]): arc for arcs in lattice for arc in arcs
    }
    assert fast.keys() == slow.keys()
    for (begin, end), arc in fast.items():
        steps, unchanged = slow[begin, end]
        assert arc[2:7] == (
            begin[0],
            end[0],
            " ".join(output[begin[1] : end[1]]),
            steps,
            steps > unchanged,
        )
