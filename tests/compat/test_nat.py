"""Tests of `fairseq_aggdec.compat.nat`."""

from __future__ import annotations

import argparse
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models import build_model
from fairseq.models.nat import levenshtein_transformer
from omegaconf import OmegaConf

import fairseq_aggdec

fairseq_aggdec.register()


@pytest.mark.parametrize("from_yaml", [False, True])
def test_non_autoregressive_models_keep_their_options(from_yaml: bool) -> None:
    """Without the mend a configuration's would be lost, and training end at the first batch."""
    options: dict[str, Any] = {"encoder_embed_dim": 8, "decoder_layers": 1, "encoder_layers": 1, "decoder_embed_dim": 8}
    options |= {"share_all_embeddings": True, "label_smoothing": 0.2}
    words = Dictionary()
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words)

    def build(architecture: str, **more: Any) -> Any:
        given = {**options, **more}
        args: Any = argparse.Namespace(arch=architecture, **given)
        if from_yaml:
            args = OmegaConf.create({"criterion": 0.2, "model": {"_name": architecture, **given}}).model
            args.label_smoothing = "${criterion}"
        return build_model(args, task)

    inat = build("iterative_nonautoregressive_transformer", pred_length_offset=True, train_step=3)
    assert (inat.decoder.pred_length_offset, inat.train_step, inat.args.label_smoothing) == (True, 3, 0.2)
    assert build("levenshtein_transformer", early_exit="1,1,1").decoder.early_exit == [1, 1, 1]


def test_rows_of_some_sentences_are_filled_in_among_those_of_all() -> None:
    mask, rows = torch.tensor([True, False, True]), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    filled = levenshtein_transformer._fill(None, mask, rows, 0.0)
    assert filled.tolist() == [[1, 2], [0, 0], [3, 4]]
    assert levenshtein_transformer._fill(None, mask, None, 0.0) is None
    assert levenshtein_transformer._fill(filled, ~mask, torch.tensor([[5.0]]), 9.0).tolist() == [[1, 2], [5, 9], [3, 4]]
