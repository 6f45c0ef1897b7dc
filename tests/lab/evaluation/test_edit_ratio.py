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
def test_the_ratio_is_the_distance_over_the_length_of_the_source(source: str, output: str, distance: int) -> None:
    first, second = source.split(), output.split()
    assert edit_distance(first, second) == edit_distance(second, first) == distance
    assert edit_ratio(first, second) == pytest.approx(distance / max(1, len(first)))
