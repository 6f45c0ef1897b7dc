import pytest

from fairseq_aggdec.generation.edit_ratio import edit_distance, edit_ratio


@pytest.mark.parametrize(
    ("source", "output", "distance"),
    [
        ("a b c", "a c", 1),  # deletion; insertion the other way round
        ("a b c", "a x c", 1),  # substitution
        ("a b c d", "b c d e", 2),  # one deletion and one insertion
        ("", "a b", 2),
    ],
)
def test_distance(source: str, output: str, distance: int) -> None:
    assert edit_distance(source.split(), output.split()) == distance
    assert edit_distance(output.split(), source.split()) == distance


def test_ratio_is_relative_to_the_source() -> None:
    assert edit_ratio("a b c d".split(), "a b c".split()) == 0.25
    assert edit_ratio("a b c".split(), "a b c d".split()) == pytest.approx(1 / 3)
    assert edit_ratio([], ["a"]) == 1.0
