"""What the engine's tests compute with."""

from collections.abc import Iterator

import pytest

from fairseq_aggdec.engine.arithmetic import linear
from fairseq_aggdec.engine.native import modules
from fairseq_aggdec.engine.native.library import kernels


@pytest.fixture(autouse=True, scope="module")
def packed_layers() -> Iterator[None]:
    """Layers of small random models are worth packing in these tests; elsewhere they run unpacked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linear, "_WORTH_PREPACKING", 0)
        yield


@pytest.fixture(params=["kernels", "PyTorch"], scope="module")
def either_engine(request: pytest.FixtureRequest) -> Iterator[None]:
    """A module's tests with the kernels, and with PyTorch's operations in their place."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "PyTorch":
            patch.setattr(modules, "kernels", lambda: None)
        else:
            assert kernels() is not None, "not compiled: bash scripts/setup.sh"
        yield
