"""The cache of keys and values: what is read back, per row, after rollbacks, growth and dropped rows."""

import torch
from torch import Tensor

from fairseq_aggdec.engine.layers import KVCache, keep_rows, moved_rows

LAYERS, HEADS, HEAD_DIM = 2, 3, 2
DIM = HEADS * HEAD_DIM
LIKE = torch.empty(0)


def started(rows: int) -> KVCache:
    cache = KVCache(LAYERS, HEADS, HEAD_DIM)
    cache.start(rows, LIKE)
    cache.reserve(8)
    return cache


def keep(cache: KVCache, places: list[int]) -> None:
    rows = torch.tensor(places)
    cache.keep(rows, moved_rows(rows))


def entries(*numbers: list[int]) -> Tensor:
    """One recognisable key-value pair for each number, B x W x 2D."""
    return torch.tensor(numbers, dtype=torch.float)[..., None].repeat(1, 1, 2 * DIM)


def write(cache: KVCache, layer: int, block: Tensor, positions: Tensor, last_start: int) -> Tensor:
    """What the last head can attend to then, B x L x 2D/H."""
    places = None if positions.size(0) == 1 else cache.places(positions)
    return written(cache, layer, block, places, last_start, last_start + block.size(1))[:, -1]


def written(
    cache: KVCache, layer: int, keys_values: Tensor, places: Tensor | None, last_start: int, width: int
) -> Tensor:
    """What is in a layer's memory behind so many positions, once a block is written, B x H x L x 2D/H."""
    memory = cache.open(places, last_start, keys_values.size(1), width)[layer]
    memory.write(keys_values)
    return torch.cat([memory.keys, memory.values], dim=-1)


def address(cache: KVCache) -> int:
    """Where the first layer's memory begins."""
    return cache.open(None, 0, 1, 1)[0].keys.data_ptr()


def at(*starts: int, width: int) -> Tensor:
    """Positions of blocks, B x W."""
    return torch.tensor(starts)[:, None] + torch.arange(width)


def test_rows_stand_where_they_are_written() -> None:
    cache = started(2)
    write(cache, 0, entries([1, 2, 3], [4, 5, 6]), at(0, 0, width=3), last_start=0)
    seen = write(cache, 0, entries([7, 8], [9, 10]), at(3, 1, width=2), last_start=3)
    assert seen.shape == (2, 5, 2 * HEAD_DIM)
    assert seen[0, :, 0].tolist() == [1, 2, 3, 7, 8]
    assert seen[1, :3, 0].tolist() == [4, 9, 10]  # rolled back to its first token; the rest is stale


def test_a_single_row_is_rolled_back_by_writing_over_it() -> None:
    cache = started(1)
    write(cache, 0, entries([1, 2, 3, 4]), at(0, width=4), last_start=0)
    seen = write(cache, 0, entries([9]), at(2, width=1), last_start=2)
    assert seen[0, :, 0].tolist() == [1, 2, 9]


def test_growth_keeps_what_was_written() -> None:
    cache = started(2)
    write(cache, 1, entries([1, 2], [3, 4]), at(0, 0, width=2), last_start=0)
    cache.reserve(1000)
    seen = write(cache, 1, entries([5], [6]), at(2, 999, width=1), last_start=999)
    assert seen.shape[1] == 1000
    assert seen[0, :3, 0].tolist() == [1, 2, 5]
    assert seen[1, [0, 1, 999], 0].tolist() == [3, 4, 6]


def test_kept_rows_are_those_asked_for_in_their_order() -> None:
    cache = started(3)
    write(cache, 0, entries([1, 2], [3, 4], [5, 6]), at(0, 0, 0, width=2), last_start=0)
    keep(cache, [2, 0])
    seen = write(cache, 0, entries([7], [8]), at(2, 1, width=1), last_start=2)
    assert seen[0, :, 0].tolist() == [5, 6, 7]
    assert seen[1, :2, 0].tolist() == [1, 8]


def test_rows_that_stay_in_their_place_are_not_copied() -> None:
    cache = started(4)
    write(cache, 0, entries([1], [2], [3], [4]), at(0, 0, 0, 0, width=1), last_start=0)
    before = address(cache)
    keep(cache, [0, 3, 2])
    seen = write(cache, 0, entries([5], [6], [7]), at(1, 1, 1, width=1), last_start=1)
    assert seen[:, 0, 0].tolist() == [1, 4, 3]
    assert address(cache) == before


def test_memory_grows_for_the_rows_that_are_left() -> None:
    cache = started(300)
    keep(cache, [7, 299])
    cache.reserve(1000)
    assert cache.memory.shape[:2] == (LAYERS, 2)
    cache.start(5, LIKE)
    assert cache.memory.size(1) == 5
    assert cache.memory.size(3) < 1000


def test_keep_rows_takes_any_rows_in_any_order() -> None:
    for rows in ([], [0], [2, 0, 1], [4, 3], [0, 1, 2, 3, 4], [3, 3, 0]):
        x = torch.arange(10.0).view(2, 5)
        expected = x[:, rows].clone()
        kept = torch.tensor(rows, dtype=torch.long)
        assert keep_rows(x, kept, moved_rows(kept), dim=1).tolist() == expected.tolist()


def test_unwritten_entries_are_finite_whatever_the_last_batch_held() -> None:
    """They are masked, but NaN times zero would be NaN."""
    cache = started(2)
    cache.memory.fill_(float("nan"))
    cache.start(2, LIKE)
    cache.reserve(500)
    assert write(cache, 0, entries([5], [6]), at(0, 400, width=1), last_start=400).isfinite().all()


def test_heads_are_split_and_their_keys_come_first() -> None:
    numbers = torch.arange(2.0 * 3 * HEADS * 2 * HEAD_DIM).view(2, 3, HEADS, 2 * HEAD_DIM)
    for rows in (1, 2):
        cache = started(rows)
        places = None if rows == 1 else cache.places(at(0, 0, width=3))
        seen = written(cache, 1, numbers[:rows].flatten(2), places, last_start=0, width=3)
        assert torch.equal(seen, numbers[:rows].transpose(1, 2))


def test_single_tokens_are_written_where_their_row_and_position_say() -> None:
    cache = started(3)
    rows, positions = torch.tensor([0, 2, 2]), torch.tensor([1, 0, 3])
    numbers = torch.tensor([7.0, 8.0, 9.0])[:, None].repeat(1, 2 * DIM)
    seen = written(cache, 0, numbers, cache.places(positions, rows), last_start=1, width=4)
    assert seen[:, 1, :, 0].tolist() == [[0, 7, 0, 0], [0, 0, 0, 0], [8, 0, 0, 9]]
