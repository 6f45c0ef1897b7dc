"""What several folders decode."""

import pytest

from fairseq_aggdec.lab.bench.random_models import RandomModel
from tests.lab.bench.tiny import tiny_model


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> RandomModel:
    """A random model of two layers, and its drafters."""
    return tiny_model(tmp_path_factory.mktemp("tiny"))
