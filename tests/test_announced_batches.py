"""Tests of `fairseq_aggdec.compat.announced_batches`."""

from fairseq_aggdec.compat.announced_batches import AnnouncedBatches


class Batches(list):
    """Stands in for fairseq's iterator, which has more than items."""

    offset = 3


def test_calls_before_each_batch_and_after_the_last() -> None:
    events: list[str] = []
    batches = AnnouncedBatches(
        Batches("ab"), at_each=lambda batch: events.append(f"before {batch}"), at_end=lambda: events.append("end")
    )
    for batch in batches:
        events.append(f"in {batch}")
    assert events == ["before a", "in a", "before b", "in b", "end"]


def test_an_iteration_that_is_broken_off_has_no_end() -> None:
    events: list[str] = []
    for _ in AnnouncedBatches(Batches("ab"), at_end=lambda: events.append("end")):
        break
    assert events == []
