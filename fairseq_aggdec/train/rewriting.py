"""A checkpoint made of another one, written into a file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import refuse_overwriting, written_whole

State = dict[str, Any]


def rewrite(checkpoint: Path, output: Path, change: Callable[[State], State]) -> tuple[State, State]:
    """Write what `change` makes of a checkpoint; returns the old and the new state.

    Raises `AggdecError` where the checkpoint cannot be read or changed, or would be overwritten.
    """
    refuse_overwriting(output, [checkpoint])
    state = read_checkpoint(checkpoint)
    try:
        changed = change(state)
    except AggdecError as error:
        raise AggdecError(f"{checkpoint}: {error}") from None
    with written_whole(output) as partial:
        torch.save(changed, partial)
    return state, changed
