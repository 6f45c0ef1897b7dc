"""`aggdec-export CHECKPOINT FOLDER --data DATA-BIN`: a trained model as a small folder that needs nothing else."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.files import written_whole


def slim_state(
    state: dict[str, Any], dtype: torch.dtype = torch.float16, verifier: Mapping[str, torch.Tensor] | None = None
) -> dict[str, Any]:
    """A checkpoint for inference only.

    Training state is dropped, floating-point weights are converted, equal weights (shared embeddings that averaging has
    separated) are stored once, and settings that are paths of the training machine are emptied.

    Args:
        state: the whole checkpoint.
        dtype: of the weights.
        verifier: weights of another model, by name; what equals them, both converted, is left out.
    """
    weights: dict[str, torch.Tensor] = {}
    for name, value in state["model"].items():
        value = _converted(value, dtype)
        if verifier is not None and name in verifier and _converted(verifier[name], dtype).equal(value):
            continue
        twin = next((w for w in weights.values() if w.shape == value.shape and w.dim() > 1 and w.equal(value)), None)
        weights[name] = value if twin is None else twin
    return {
        "args": None,
        "cfg": _without_paths(state["cfg"]),
        "model": weights,
        "optimizer_history": state["optimizer_history"][-1:],
        "extra_state": {"epoch": 0, "train_iterator": {"epoch": 0}},
        "last_optimizer_state": None,
        "task_state": {},
    }


def _converted(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return value.to(dtype) if value.is_floating_point() else value


def _without_paths(setting: Any) -> Any:
    if isinstance(setting, argparse.Namespace):  # what the model of an argparse-configured run has
        return argparse.Namespace(**_without_paths(vars(setting)))
    if hasattr(setting, "items"):
        return {name: _without_paths(value) for name, value in setting.items()}
    if isinstance(setting, list | tuple):
        return [_without_paths(value) for value in setting]
    return "" if isinstance(setting, str) and "/" in setting else setting


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help."""
    parser = argparse.ArgumentParser(
        prog="aggdec-export",
        description="Write weights (half precision), dictionaries and BPE codes of a trained model into one folder.",
    )
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("folder", type=Path, help="made if it is not there")
    parser.add_argument("--data", type=Path, required=True, help="folder with the dict.*.txt and, if any, codes")
    parser.add_argument("--fp32", action="store_true", help="keep single precision")
    parser.add_argument(
        "--without-shared",
        type=Path,
        metavar="VERIFIER",
        help="leave out the weights that this checkpoint has too: a drafter with a frozen encoder takes them from its "
        "verifier, and decodes with that one only",
    )
    args = parser.parse_args(argv)

    from fairseq_aggdec.compat import read_checkpoint

    state = read_checkpoint(args.checkpoint)
    if state.get("cfg") is None:
        raise AggdecError(
            f"{args.checkpoint}: an old-style checkpoint without `cfg`; load and save it with fairseq first"
        )
    extras = sorted(args.data.glob("dict.*.txt"))
    if not extras:
        raise AggdecError(f"{args.data}: has no dict.*.txt; --data is the folder that fairseq-preprocess made")
    verifier = None if args.without_shared is None else read_checkpoint(args.without_shared)["model"]
    slim = slim_state(state, torch.float32 if args.fp32 else torch.float16, verifier)
    if verifier is not None and len(slim["model"]) == len(state["model"]):
        raise AggdecError(
            f"--without-shared {args.without_shared}: has no weights in common with {args.checkpoint}; name the "
            "verifier that it was trained from, with --fp32 the one in single precision"
        )
    with written_whole(args.folder / "model.pt") as partial:
        torch.save(slim, partial)
        for extra in extras:
            shutil.copyfile(extra, args.folder / extra.name)
        if (args.data / "codes").is_file():  # fairseq's from_pretrained looks for them under that name
            shutil.copyfile(args.data / "codes", args.folder / "bpecodes")
    size = sum(file.stat().st_size for file in args.folder.iterdir())
    print(f"{args.folder}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
