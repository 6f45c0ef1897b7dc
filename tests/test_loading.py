"""Tests of `fairseq_aggdec.tasks.loading`."""

from pathlib import Path

import pytest
import torch

from fairseq_aggdec import register
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.tasks.loading import batches_of, load
from tests.helpers import ToyModel


def test_batches_keep_the_numbers_of_the_sentences(toy_model_dir: ToyModel) -> None:
    register()
    task, models = load(str(toy_model_dir.checkpoint), str(toy_model_dir.data))
    assert not models[0].training
    sentences = [torch.tensor([5] * length + [2]) for length in (9, 1, 8, 2, 3)]
    in_order = batches_of(task, sentences, 2)
    assert [sorted(batch["id"].tolist()) for batch in in_order] == [[0, 1], [2, 3], [4]]
    by_length = batches_of(task, sentences, 2, by_length=True)
    assert [sorted(batch["id"].tolist()) for batch in by_length] == [[1, 3], [2, 4], [0]]
    in_another = batches_of(task, sentences, 2, order=[4, 0, 3, 1, 2])
    assert [sorted(batch["id"].tolist()) for batch in in_another] == [[0, 4], [1, 3], [2]]
    for batch in by_length:
        for number, row in zip(batch["id"].tolist(), batch["net_input"]["src_tokens"], strict=True):
            assert row[row != task.source_dictionary.pad()].tolist() == sentences[number].tolist()


def test_other_dictionaries_are_refused(toy_model_dir: ToyModel, tmp_path: Path) -> None:
    register()
    for name in ("dict.src.txt", "dict.tgt.txt"):
        (tmp_path / name).write_text((toy_model_dir.data / name).read_text() + "elephant 1\n")
    with pytest.raises(AggdecError, match=r"checkpoint .*checkpoint_last.pt: does not fit the dictionaries in "):
        load(str(toy_model_dir.checkpoint), str(tmp_path), "src", "tgt")
