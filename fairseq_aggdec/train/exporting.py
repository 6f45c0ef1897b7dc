"""`aggdec export`: a trained model as a small folder that needs nothing else."""

import argparse
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from fairseq_aggdec.compat.checkpoints import read_checkpoint, without_training
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import written_whole


def export(
    checkpoint: Path,
    folder: Path,
    data: Path,
    dtype: torch.dtype,
    shared_with: Path | None = None,
    draft_length: int | None = None,
) -> None:
    """Write a checkpoint's weights and the dictionaries and BPE codes of its data into a folder.

    `data`: the folder with the dictionaries and, if there are any, the codes. `dtype`: the type of the written weights.
    `shared_with`: the checkpoint of a drafter's verifier: weights that both share are left out. `draft_length`: of a
    drafter, see `with_draft_length`; None: as in its checkpoint.

    Raises:
        AggdecError: a file cannot be read or lacks something, no weight is shared, the folder has a model, or the
            model cannot have drafts of this length.
    """
    state = read_checkpoint(checkpoint)
    if state.get("cfg") is None:
        raise AggdecError(
            f"{checkpoint}: an old-style checkpoint without `cfg`; load and save it with fairseq first"
        )
    extras = sorted(data.glob("dict.*.txt"))
    if not extras:
        raise AggdecError(
            f"{data}: has no dict.*.txt; --data is the folder that fairseq-preprocess made"
        )
    verifier = None if shared_with is None else read_checkpoint(shared_with)["model"]
    slim = slim_state(state, dtype, verifier)
    if verifier is not None and len(slim["model"]) == len(state["model"]):
        raise AggdecError(
            f"--without-shared {shared_with}: has no weights in common with {checkpoint}; name the "
            "verifier that it was trained from, with --fp32 the one in single precision"
        )
    if draft_length is not None:
        try:
            slim = with_draft_length(slim, draft_length)
        except AggdecError as error:
            raise AggdecError(
                f"--decoding-block-size {draft_length}: {checkpoint}: {error}"
            ) from None
    if (folder / "model.pt").exists():
        raise AggdecError(
            f"{folder / 'model.pt'}: is there already; name another folder, or delete it first"
        )
    with written_whole(folder / "model.pt") as partial:
        torch.save(slim, partial)
        copies = [(extra, folder / extra.name) for extra in extras]
        # the name by which fairseq's from_pretrained finds them
        if (data / "codes").is_file():
            copies.append((data / "codes", folder / "bpecodes"))
        for extra, copy in copies:
            # the data folder itself is exported into
            with suppress(shutil.SameFileError):
                shutil.copyfile(extra, copy)


def with_draft_length(state: dict[str, Any], length: int) -> dict[str, Any]:
    """A drafter's checkpoint with this length of drafts where `--block-size` is not given; the weights are not copied.

    Raises `AggdecError` where it is no drafter, or was trained for shorter blocks.
    """
    if "decoder.mask_embedding" not in state["model"]:
        raise AggdecError(
            "an ordinary model: only a block drafter has a length of drafts"
        )
    options = state["cfg"]["model"]
    is_namespace = isinstance(options, argparse.Namespace)
    settings = dict(vars(options) if is_namespace else options)
    longest = settings["block_size"]
    if not 1 <= length <= longest:
        raise AggdecError(f"was trained for blocks of {longest}: give 1 to {longest}")
    settings["decoding_block_size"] = length  # of `NarDrafterConfig`
    changed = argparse.Namespace(**settings) if is_namespace else settings
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


def slim_state(
    state: dict[str, Any],
    dtype: torch.dtype = torch.float16,
    verifier: Mapping[str, torch.Tensor] | None = None,
) -> dict[str, Any]:
    """A checkpoint for inference only.

    The training state is dropped, floating-point weights are converted, equal weights (shared embeddings that averaging
    has separated) are stored once, and paths of the training machine are removed from the options.

    A weight that equals its namesake among those of `verifier` is left out.
    """
    shared = verifier or {}
    weights: dict[str, torch.Tensor] = {}
    for name, value in state["model"].items():
        value = _converted(value, dtype)
        if name in shared and _converted(shared[name], dtype).equal(value):
            continue
        twins = (w for w in weights.values() if w.dim() > 1 and w.equal(value))
        weights[name] = next(twins, value)
    return without_training(
        {
            "args": None,
            "cfg": _without_paths(state["cfg"]),
            "model": weights,
            "task_state": {},
            "optimizer_history": state.get("optimizer_history"),
        }
    )


def _converted(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return value.to(dtype) if value.is_floating_point() else value


def _without_paths(setting: Any) -> Any:
    # what the model of an argparse-configured run has
    if isinstance(setting, argparse.Namespace):
        return argparse.Namespace(**_without_paths(vars(setting)))
    if hasattr(setting, "items"):
        return {name: _without_paths(value) for name, value in setting.items()}
    if isinstance(setting, list | tuple):
        return [_without_paths(value) for value in setting]
    return "" if isinstance(setting, str) and "/" in setting else setting
