"""MaxMatch by hand; the lattice that it searches has a test of its own."""

from fairseq_aggdec.data.m2_file import GoldEdit
from fairseq_aggdec.lab.evaluation.edit_lattice import edit_lattice
from fairseq_aggdec.lab.evaluation.maxmatch import Edit, best_edits, count_correct


def edits(source: str, output: str, *gold: GoldEdit, most: int = 2) -> list[Edit]:
    return best_edits(edit_lattice(source.split(), output.split(), most), gold)


def test_changes_that_touch_are_one_edit_unless_the_gold_edits_are_several() -> None:
    source, output = "otters is an apex", "otters are apex"
    assert edits(source, output) == [(1, 3, "are")]
    assert edits(source, output, GoldEdit(1, 2, ("are",)), GoldEdit(2, 3, ("",))) == [(1, 2, "are"), (2, 3, "")]
    assert edits(source, output, GoldEdit(1, 3, ("are",))) == [(1, 3, "are")]


def test_any_of_several_corrections_matches() -> None:
    gold = GoldEdit(1, 1, ("the", "a"))
    for word in ("the", "a"):
        found = edits("at mat", f"at {word} mat", gold)
        assert found == [(1, 1, word)]
        assert count_correct(found, [gold]) == 1
    assert count_correct(edits("at mat", "at my mat", gold), [gold]) == 0
