"""MaxMatch by hand, and against all paths through the lattice."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_aggdec.data.m2_file import GoldEdit
from fairseq_aggdec.lab.evaluation.edit_lattice import Arc, EditLattice, edit_lattice
from fairseq_aggdec.lab.evaluation.maxmatch import Edit, best_edits, count_correct

TOKENS = st.lists(st.sampled_from("abc"), max_size=4)
PHRASES = st.lists(st.sampled_from("abc"), max_size=2).map(" ".join)


def edits(source: str, output: str, *gold: GoldEdit, most: int = 2) -> list[Edit]:
    return best_edits(edit_lattice(source.split(), output.split(), most), gold)


def test_changes_that_touch_are_one_edit_unless_the_gold_edits_are_several() -> None:
    source, output = "otters is an apex", "otters are apex"
    assert edits(source, output) == [(1, 3, "are")]
    assert edits(source, output, GoldEdit(1, 2, ("are",)), GoldEdit(2, 3, ("",))) == [(1, 2, "are"), (2, 3, "")]
    assert edits(source, output, GoldEdit(1, 3, ("are",))) == [(1, 3, "are")]


def test_the_example_of_the_paper() -> None:
    # Dahlmeier and Ng 2012, section 4: "our baseline system feeds word" -> "a word", where "word -> a word" and
    # "{} -> a" are the same correction; whichever is gold is found.
    source = "Our baseline system feeds word into PB-SMT pipeline ."
    output = "Our baseline system feeds a word into PB-SMT pipeline ."
    assert edits(source, output, GoldEdit(4, 5, ("a word",))) == [(4, 5, "a word")]
    assert edits(source, output, GoldEdit(4, 4, ("a",))) == [(4, 4, "a")]


def test_any_of_several_corrections_matches() -> None:
    gold = GoldEdit(1, 1, ("the", "a"))
    for word in ("the", "a"):
        found = edits("at mat", f"at {word} mat", gold)
        assert found == [(1, 1, word)]
        assert count_correct(found, [gold]) == 1
    assert count_correct(edits("at mat", "at my mat", gold), [gold]) == 0


def all_paths(lattice: EditLattice, vertex: int) -> list[list[Arc]]:
    if vertex == 0:
        return [[]]
    return [[*path, arc] for arc in lattice.arcs_into[vertex] for path in all_paths(lattice, arc.origin)]


def patched(source: list[str], found: list[Edit]) -> list[str]:
    """What edits make of a source."""
    output, at = [], 0
    for edit in found:
        output += [*source[at : edit.start], *edit.correction.split()]
        at = edit.end
    return output + source[at:]


@settings(max_examples=60, deadline=None)
@given(source=TOKENS, output=TOKENS, most=st.integers(0, 2), data=st.data())
def test_no_path_matches_more(source: list[str], output: list[str], most: int, data: st.DataObject) -> None:
    spans = data.draw(
        st.lists(st.tuples(st.integers(0, len(source)), st.integers(0, 2)), max_size=3, unique_by=lambda span: span[0])
    )
    gold = [GoldEdit(start, min(start + length, len(source)), (data.draw(PHRASES),)) for start, length in sorted(spans)]
    gold = [edit for edit in gold if edit.corrections[0].split() != source[edit.start : edit.end]]
    lattice = edit_lattice(source, output, most)
    found = best_edits(lattice, gold)
    assert patched(source, found) == output

    def matches(path: list[Arc]) -> int:
        wanted = {(edit.start, edit.end, edit.corrections[0]) for edit in gold}
        return len({arc[2:5] for arc in path if arc.changes} & wanted)

    paths = all_paths(lattice, len(lattice.arcs_into) - 1)
    most_matches = max(map(matches, paths))
    if any(edit.start == edit.end for edit in gold):  # given to one arc, perhaps not to the best
        assert count_correct(found, gold) <= most_matches
    else:
        assert count_correct(found, gold) == most_matches
    if not gold:
        steps = min(sum(arc.steps for arc in path) for path in paths)
        fewest = min(sum(arc.changes for arc in path) for path in paths if sum(arc.steps for arc in path) == steps)
        assert fewest <= len(found) <= fewest + 1  # `Arc.times` can part one edit in two
