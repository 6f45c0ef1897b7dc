"""Corrections of fairseq's non-autoregressive models: training from YAML, decoding in batches and on a GPU."""

import argparse
from collections.abc import Callable
from typing import Any

from omegaconf import OmegaConf


def with_own_options(build: Callable[..., Any]) -> Any:
    """Wrap `build_model` of fairseq's non-autoregressive models, which loses options that come from YAML.

    fairseq copies the options into those of a Transformer. From a configuration it copies only the Transformer's:
    `pred_length_offset`, `early_exit` and others would have their defaults, or be missing.
    """

    def build_model(cls: Any, args: Any, task: Any) -> Any:
        if OmegaConf.is_config(args):
            args = argparse.Namespace(**OmegaConf.to_container(args, resolve=True))
        return build(cls, args, task)

    return classmethod(build_model)


def argmax(scores: Any) -> int:
    """Replace `numpy.argmax` where fairseq chooses a length: numpy reads no tensors on a GPU or in bfloat16."""
    numbers = [float(score) for score in scores]
    return numbers.index(max(numbers))


def filling_missing_rows(fill: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the Levenshtein Transformer's `_fill`, which writes the rows of some sentences into those of the batch.

    Where the batch has no rows yet (attention, in the first pass), fairseq returns the rows of some sentences in place
    of all, and fails on a batch with an empty sentence.
    """

    def filled(rows: Any, mask: Any, values: Any, padding: Any) -> Any:
        if rows is None and values is not None:
            rows = values.new_full((mask.size(0), *values.shape[1:]), padding)
        return fill(rows, mask, values, padding)

    return filled
