"""The models that all command-line tests decode with."""

from functools import partial
from pathlib import Path

import pytest

from tests.cli.correction import (
    MODEL,
    Process,
    generate,
    make_correction_data,
    train_drafter,
    train_heads,
)
from tests.support.helpers import ToyModel, train_toy
from tests.support.sharing import made_once


@pytest.fixture(scope="session")
def correction_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "correction", make_correction_data)


@pytest.fixture(scope="session")
def correction_model(
    correction_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> ToyModel:
    """A plain `translation` model of stock fairseq-train."""
    train = partial(train_toy, correction_data, options=MODEL, updates=280)
    return made_once(tmp_path_factory, "correction_model", train)


@pytest.fixture(scope="session")
def correction_drafter(
    correction_model: ToyModel, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A block drafter on that model's encoder."""
    return made_once(
        tmp_path_factory, "drafter", partial(train_drafter, correction_model)
    )


@pytest.fixture(scope="session")
def heads(correction_model: ToyModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Proposal heads on that model."""
    return made_once(tmp_path_factory, "heads", partial(train_heads, correction_model))


@pytest.fixture(scope="session")
def beam_one(
    correction_model: ToyModel, tmp_path_factory: pytest.TempPathFactory
) -> Process:
    """What stock fairseq gives for the test set."""
    return made_once(
        tmp_path_factory, "beam_one", lambda _: generate(correction_model, None)
    )
