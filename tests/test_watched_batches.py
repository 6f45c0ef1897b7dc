"""Tests of `fairseq_aggdec.compat.batches`."""

from fairseq_aggdec.compat.batches import WatchedBatches


class Batches(list):
    """Stands in for fairseq's iterator, which has more than items."""

    offset = 3


def test_calls_before_each_batch_and_after_the_last() -> None:
    events: list[str] = []
    batches = WatchedBatches(
        Batches("ab"),
        before_each=lambda batch: events.append(f"before {batch}"),
        after_last=lambda: events.append("end"),
    )
    for batch in batches:
        events.append(f"in {batch}")
    assert events == ["before a", "in a", "before b", "in b", "end"]


def test_an_iteration_that_is_broken_off_has_no_end() -> None:
    events: list[str] = []
    for _ in WatchedBatches(Batches("ab"), after_last=lambda: events.append("end")):
        break
    assert events == []
