"""What fairseq's non-autoregressive models need to be trained from YAML, and to decode in batches and on a GPU.

A model that is built from YAML loses the options that are its own: see `_with_its_options`. A length beam decodes in
single precision on a CPU alone: see `_best_of`. A Levenshtein Transformer ends at a batch of which it leaves a sentence
empty: see `_filling_from_nothing`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from fairseq import iterative_refinement_generator
from fairseq.models.nat import FairseqNATModel, levenshtein_transformer
from omegaconf import OmegaConf


def _with_its_options(build: Callable[..., Any]) -> Any:
    """Wrap `build_model` of fairseq's non-autoregressive models, so that configurations serve as command lines do.

    On its way fairseq copies the options into those of a Transformer, and of a configuration only what a Transformer
    knows: `pred_length_offset`, `early_exit`, ... would keep their defaults, or be missing.
    """

    def build_model(cls: Any, args: Any, task: Any) -> Any:
        if OmegaConf.is_config(args):
            args = argparse.Namespace(**OmegaConf.to_container(args, resolve=True))
        return build(cls, args, task)

    return classmethod(build_model)


def _best_of(scores: Any) -> int:
    """Stands in for `numpy.argmax` in fairseq's `IterativeRefinementGenerator`, which chooses the best length by it.

    numpy reads no tensors on a GPU and none in bfloat16.
    """
    numbers = [float(score) for score in scores]
    return numbers.index(max(numbers))


def _filling_from_nothing(fill: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the Levenshtein Transformer's `_fill`, which writes some sentences' rows into those of a batch.

    Where there are none yet (attention, at the first pass) it returns the rows as if they were of all sentences.
    """

    def filled(rows: Any, mask: Any, values: Any, padding: Any) -> Any:
        if rows is None and values is not None:
            rows = values.new_full((mask.size(0), *values.shape[1:]), padding)
        return fill(rows, mask, values, padding)

    return filled


def install() -> None:
    """Mend the running process; called once, by `compat.install`."""
    FairseqNATModel.build_model = _with_its_options(FairseqNATModel.build_model.__func__)
    iterative_refinement_generator.np = SimpleNamespace(argmax=_best_of)
    levenshtein_transformer._fill = _filling_from_nothing(levenshtein_transformer._fill)
