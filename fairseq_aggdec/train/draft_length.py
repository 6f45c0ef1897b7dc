"""The length of a drafter's drafts where `--block-size` is not given: a setting in its checkpoint."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import torch

from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import written_whole


def with_draft_length(state: dict[str, Any], length: int) -> dict[str, Any]:
    """A drafter's checkpoint with this length of drafts in its settings; the weights are not copied.

    Raises `AggdecError` where it is no drafter, or was trained for shorter blocks.
    """
    if "decoder.mask_embedding" not in state["model"]:
        raise AggdecError("an ordinary model: only a block drafter has a length of drafts")
    options = state["cfg"]["model"]
    settings = dict(vars(options) if isinstance(options, Namespace) else options)
    longest = settings["block_size"]
    if not 1 <= length <= longest:
        raise AggdecError(f"was trained for blocks of {longest}: give 1 to {longest}")
    settings["decoding_block_size"] = length  # of `NarDrafterConfig`
    changed = Namespace(**settings) if isinstance(options, Namespace) else settings
    return {**state, "cfg": {**state["cfg"], "model": changed}}


def keep_draft_length(checkpoint: Path, length: int) -> None:
    """Set the length of drafts in a checkpoint's file.

    Raises `AggdecError` where it is no drafter, or was trained for shorter blocks.
    """
    state = read_checkpoint(checkpoint)
    changed = with_draft_length(state, length)
    if changed["cfg"]["model"] != state["cfg"]["model"]:
        with written_whole(checkpoint) as partial:
            torch.save(changed, partial)
