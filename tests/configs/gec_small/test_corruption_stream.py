"""Streams of lines: the same bytes whatever the number of workers, in bounded memory."""

from __future__ import annotations

import tracemalloc

import pytest

from configs.gec_small.errors.corruption import Corruptor
from configs.gec_small.errors.corruption_stream import corrupt_stream
from configs.gec_small.errors.lexicon import Lexicon
from tests.configs.gec_small.essays import ESSAY, essay_lexicon


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return essay_lexicon()


def test_memory_does_not_grow_with_the_input(lexicon: Lexicon) -> None:
    def peak(lines: int) -> int:
        tracemalloc.start()
        for _ in corrupt_stream(Corruptor(lexicon), (ESSAY[i % 5].encode() for i in range(lines)), 1, chunk_size=100):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(300)
    assert peak(3000) < 1.3 * peak(500)
