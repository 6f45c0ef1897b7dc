"""The model that all command-line tests decode with."""

import pytest

from tests.cli_integration.correction import Process, generate, train_correction_model
from tests.helpers import ToyModel


@pytest.fixture(scope="session")
def correction_model(tmp_path_factory: pytest.TempPathFactory) -> ToyModel:
    return train_correction_model(tmp_path_factory.mktemp("correction"))


@pytest.fixture(scope="session")
def beam_one(correction_model: ToyModel) -> Process:
    """What stock fairseq gives for the test set."""
    return generate(correction_model, None)
