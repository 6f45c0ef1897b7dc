"""A random model with a drafter, and a binarised development set for it."""

from pathlib import Path

import pytest
import torch
from fairseq.data import indexed_dataset

from fairseq_aggdec import register
from fairseq_aggdec.lab.bench.random_models import SOURCE, TARGET, RandomModel, random_sentences
from tests.lab.bench.tiny import LENGTH, VOCABULARY, tiny_model

SENTENCES = 6


@pytest.fixture(scope="session")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> RandomModel:
    register()
    model = tiny_model(tmp_path_factory.mktemp("tuned"))
    for seed, side in enumerate((SOURCE, TARGET)):
        prefix = model.folder / f"valid.{SOURCE}-{TARGET}.{side}"
        write_dataset(prefix, random_sentences(SENTENCES, LENGTH + seed, VOCABULARY))
    return model


def write_dataset(prefix: Path, sentences: list[list[int]]) -> None:
    builder = indexed_dataset.make_builder(f"{prefix}.bin", impl="mmap", vocab_size=VOCABULARY)
    for sentence in sentences:
        builder.add_item(torch.tensor(sentence))
    builder.finalize(f"{prefix}.idx")
