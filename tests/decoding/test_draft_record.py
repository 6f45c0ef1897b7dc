"""What is learnt of drafts and of the ends of batches."""

import pytest

from fairseq_aggdec.decoding.draft_record import DraftRecord, TailRecord


def test_chances_of_a_kind_that_is_not_known_are_those_to_begin_with() -> None:
    assert DraftRecord(0.5).chances(3, 3) == [0.5, 0.25, 0.125]
    assert DraftRecord(0.5).chances(3, 0) == []


def test_chances_are_learnt_for_each_kind_and_position() -> None:
    record = DraftRecord(0.5)
    for _ in range(100):
        record.learn([2, 2, 0], [2, 1, 0], [0, 1, 2])
    assert record.chances(0, 2) == pytest.approx([1, 1], abs=0.05)
    assert record.chances(1, 2) == pytest.approx([1, 0], abs=0.05)
    assert record.chances(1, 1) == record.chances(1, 2)[:1]
    assert record.chances(2, 2) == [0.5, 0.25]
    before = record.chances(0, 30)
    record.learn([30], [0], [0])
    assert record.chances(0, 30)[0] < before[0]


def test_drafts_are_expected_as_often_and_as_long_as_they_were_seen() -> None:
    record = DraftRecord(0.5)
    assert record.expected(4, 3) == {0: [4.0, 4.0, 4.0]}
    for _ in range(300):  # longer than it remembers
        record.see([2, 0, 4, 8], [0, 0, 1, 1])
    expected = record.expected(8, 5)
    assert expected[0] == pytest.approx([2, 2], rel=0.05)
    assert expected[1] == pytest.approx([4] * 5, rel=0.05)


def test_how_many_tokens_a_batch_takes_from_when_few_rows_are_left() -> None:
    tails = TailRecord()
    unknown = tails.left(2)
    for rows, position in [(3, 1), (3, 2), (2, 5), (2, 6), (1, 10), (1, 12)]:
        tails.see(rows, position)
    assert tails.left(2) == unknown  # the batch has not ended
    tails.see(4, 1)
    assert [tails.left(rows) for rows in (1, 2, 3)] == [3, 8, 12]
    assert tails.left(30) == 12  # the nearest
    tails.see(1, 30)
    tails.see(4, 1)
    assert 1 < tails.left(1) < 3
