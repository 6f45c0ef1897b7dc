"""What the engine's tests compute with."""

from collections.abc import Iterator

import pytest

from fairseq_aggdec.engine.plain import products


@pytest.fixture(autouse=True, scope="module")
def packed_layers() -> Iterator[None]:
    """Layers of small random models are worth packing in these tests; elsewhere they run unpacked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, "_MIN_MULTIPLICATIONS", 0)
        yield
