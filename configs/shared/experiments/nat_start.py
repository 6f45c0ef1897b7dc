"""Starting weights for fairseq's non-autoregressive models, taken from an autoregressive Transformer.

These models have all weights of a Transformer, and one or two tables more. fairseq starts from a checkpoint
(`--finetune-from-model`) only if it has every weight, so the tables are added, with random values as fairseq's own.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from fairseq_aggdec.compat.checkpoints import without_training
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.train.shrinking import rewrite

_LENGTHS = {"embed_length": (256, 1)}
TABLES = {
    "nonautoregressive_transformer": _LENGTHS,
    "iterative_nonautoregressive_transformer": _LENGTHS,
    "cmlm_transformer": _LENGTHS,
    "levenshtein_transformer": {"embed_mask_ins": (256, 2), "embed_word_del": (2, 1)},
}
"""architecture: the tables that its decoder has beyond a Transformer's, by their rows and multiples of the width"""


def write_nat_start(checkpoint: Path, architecture: str, output: Path) -> None:
    """Write the `nat_start` of a checkpoint into a file.

    Raises:
        AggdecError: the checkpoint cannot be read, is of another kind, or would be overwritten; or there is no such
            architecture.
    """
    if architecture not in TABLES:
        raise AggdecError(f"{architecture}: choose one of {', '.join(TABLES)}")
    rewrite(checkpoint, output, lambda state: nat_start(state, architecture))


def nat_start(state: Mapping[str, Any], architecture: str) -> dict[str, Any]:
    """A checkpoint for `--finetune-from-model` of a non-autoregressive model of the same size.

    The state of a Transformer encoder-decoder is not changed; `architecture` is a key of `TABLES`.

    Raises:
        AggdecError: the checkpoint is of another kind of model.
    """
    weights = state["model"]
    embeddings = weights.get("decoder.embed_tokens.weight")
    if embeddings is None or "encoder.layers.0.fc1.weight" not in weights:
        raise AggdecError(
            "no Transformer encoder-decoder: it has no decoder.embed_tokens or no encoder.layers.0"
        )
    width = embeddings.size(1)
    generator = torch.Generator().manual_seed(1)
    tables = {
        f"decoder.{name}.weight": torch.randn(rows, times * width, generator=generator)
        * (times * width) ** -0.5
        for name, (rows, times) in TABLES[architecture].items()
    }
    return {**without_training(state), "model": {**weights, **tables}}
