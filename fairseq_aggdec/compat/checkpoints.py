"""Reading fairseq's checkpoints without running code in them.

fairseq calls `torch.load` without `weights_only`; since PyTorch 2.6 that refuses every fairseq checkpoint, which holds
an `argparse.Namespace` (and, after training with `--eval-bleu`, small numpy arrays). The check stays on, extended by
the classes of `allowed_classes`. Any other class is refused by name before it is unpickled, and so are stored options
that fairseq would evaluate as Python (`stored_options`). docs/fairseq.md has more.
"""

import argparse
import errno
import functools
import logging
import os
import pickle
import re
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from fairseq import checkpoint_utils
from omegaconf import OmegaConf

from fairseq_aggdec.compat.allowed_classes import allowed_globals
from fairseq_aggdec.compat.stored_options import find_code
from fairseq_aggdec.errors import AggdecError


class CheckpointError(AggdecError):
    """A checkpoint that cannot be used: missing, damaged, not fairseq's, or holding classes that are not allowed."""


def read_checkpoint(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a checkpoint of any version of fairseq-train, unchanged, to the CPU.

    Raises `CheckpointError` where the file is missing, damaged, not fairseq's, or holds a class that is not allowed.
    """
    path = os.fspath(path)
    if not os.path.exists(path):
        raise CheckpointError(f"checkpoint {path}: no such file; check the path")
    if not os.path.isfile(path):
        raise CheckpointError(
            f"checkpoint {path}: not a file; name the checkpoint itself, such as checkpoint_best.pt"
        )
    with torch.serialization.safe_globals(allowed_globals()):
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
        except Exception as error:
            raise CheckpointError(
                f"checkpoint {path}: {_reason(path, error)}"
            ) from None
    if not isinstance(state, dict):
        raise CheckpointError(
            f"checkpoint {path}: holds a {type(state).__name__}, not a fairseq checkpoint{_ADVICE}"
        )
    _refuse_content(path, state)
    return state


def without_training(state: Mapping[str, Any]) -> dict[str, Any]:
    """A checkpoint's contents without the state of its training, so that the next training begins anew."""
    return {
        **state,
        "last_optimizer_state": None,
        "optimizer_history": list(
            state.get("optimizer_history")
            or [{"criterion_name": "", "best_loss": None}]
        )[-1:],
        "extra_state": {"epoch": 0, "train_iterator": {"epoch": 0}},
    }


_KINDS: dict[str, Any] = {
    **{"model": Mapping, "cfg": Mapping | None, "args": argparse.Namespace | None},
    **dict.fromkeys(("cfg.model", "cfg.task"), Mapping | argparse.Namespace),
}
"""of the parts of a checkpoint that make a model"""


def _refuse_content(path: str, state: dict[str, Any]) -> None:
    """Raise `CheckpointError` where a part is missing or of another kind, or a stored option could run code."""
    if "model" not in state or not (state.get("cfg") or state.get("args")):
        keys = ", ".join(map(str, list(state)[:5])) or "nothing"
        raise CheckpointError(
            f"checkpoint {path}: not a fairseq checkpoint: it needs `model` and `cfg` (or `args`), and holds {keys}"
            f"{_ADVICE}"
        )
    for name, kind in _KINDS.items():
        group, _, within = name.rpartition(".")
        parts = state.get(group) if group else state
        if (
            isinstance(parts, Mapping)
            and within in parts
            and not isinstance(parts[within], kind)
        ):
            raise CheckpointError(
                f"checkpoint {path}: its `{name}` is of type {type(parts[within]).__name__}{_ADVICE}"
            )
    found = find_code({"args": state.get("args"), "cfg": state.get("cfg")})
    if found:
        raise CheckpointError(
            f"checkpoint {path}: refused: its {found}; nothing was executed. {_IF_TRUSTED}"
        )


_IF_TRUSTED = "If you trust its origin, load it in a program of your own and save it again with plain data only"
_ADVICE = "; name a file that fairseq-train saved"


def _reason(path: str, error: Exception) -> str:
    """The message for a failure of `torch.load`. Call it within `safe_globals(allowed_globals())`."""
    if (
        isinstance(error, OSError) and error.errno != errno.EINVAL
    ):  # EINVAL: in a short file torch seeks before its start
        return f"cannot be read: {error.strerror or error}"
    refused: list[str] = []
    try:
        refused = torch.serialization.get_unsafe_globals_in_checkpoint(path)
    except Exception:  # no zip archive: torch.load's message names the first class
        refused = re.findall(r"GLOBAL ([\w.]+)", str(error))[:1]
    if refused:
        return (
            f"refused: it holds {', '.join(refused)}, and unpickling such a class can run code; nothing was executed. "
            f"{_IF_TRUSTED}"
        )
    if isinstance(error, pickle.UnpicklingError) and "not a number" in str(error):
        return "refused: it holds numpy data that are not numbers; nothing was executed"
    if os.path.getsize(path) == 0:
        return "an empty file; copy it again"
    with open(path, "rb") as file:
        # zip archive, and the pickle of torch < 1.6
        is_torch_file = file.read(2) in (b"PK", b"\x80\x02")
    if is_torch_file:
        return f"truncated or damaged ({os.path.getsize(path):,} bytes); copy it again"
    return f"not a PyTorch file{_ADVICE}"


def checked(load: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Wrap fairseq's loading of a checkpoint, which PyTorch since 2.6 refuses: it checks as `read_checkpoint`."""

    @functools.wraps(load)
    def load_checked(path: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            with torch.serialization.safe_globals(allowed_globals()):
                state = load(path, *args, **kwargs)
        except Exception:
            local_path = checkpoint_utils.PathManager.get_local_path(path)
            # raises a better message if the file itself is the reason
            read_checkpoint(local_path)
            raise
        _refuse_content(path, state)
        if is_loading_models():
            given = kwargs.get("arg_overrides", args[0] if args else None)
            _forget_precision(state, given or {})
        return state

    return load_checked


_FLAGS_OF_FAIRSEQ = (
    "fp16",
    "bf16",
    "sampling",
    "retain_dropout",
    "score_reference",
    "pipeline_model_parallel",
)
"""boolean fields of the plugin's task; where an old checkpoint lacks them, fairseq takes `${common.bf16}` for true"""


def _forget_precision(state: dict[str, Any], overrides: Mapping[str, Any]) -> None:
    """Clear the stored precision of a model's training: it decodes in single precision unless `overrides` set another.

    fairseq's search does not read these options, but this plugin's task does.
    """
    of_task = overrides.get("task")
    args = state.get("args")
    if args is not None:
        for name in _FLAGS_OF_FAIRSEQ:
            if not hasattr(args, name):
                setattr(args, name, False)
    for name in ("fp16", "bf16"):
        if name in overrides or (isinstance(of_task, Mapping) and name in of_task):
            continue
        if args is not None:
            setattr(args, name, False)
        options = state.get("cfg") or {}
        for part in ("common", "task"):
            if OmegaConf.is_dict(options.get(part)) and options[part].get(name):
                options[part][name] = False


def open_archive(path: str, mode: str) -> tarfile.TarFile:
    """Replace `tarfile.open` where fairseq unpacks an archive for `from_pretrained`, wherever its members point.

    Raises `CheckpointError` for a member outside of the archive's folder, or that is neither file nor folder.
    """
    archive = tarfile.open(path, mode)  # type: ignore[call-overload] # noqa: SIM115
    # missing before Python 3.11.4
    archive.extraction_filter = getattr(tarfile, "data_filter", None)
    for member in archive:
        is_within = not os.path.isabs(
            member.name
        ) and os.pardir not in member.name.split("/")
        if not is_within or not (member.isreg() or member.isdir()):
            archive.close()
            raise CheckpointError(
                f"archive {path}: refused: {member.name!r} is no file or folder within it"
            )
    return archive


_loading: ContextVar[bool] = ContextVar("loading", default=False)


def is_loading_models() -> bool:
    """Whether fairseq builds a model for a checkpoint's weights, which it tells the task, but not the model."""
    return _loading.get()


@contextmanager
def loading_models() -> Iterator[None]:
    """Make `is_loading_models` true within the block."""
    before = _loading.set(True)
    try:
        yield
    finally:
        _loading.reset(before)


@functools.cache
def _warn(message: str) -> None:
    """Log a warning, once in a process: a command may load its models in several precisions."""
    logging.getLogger(__name__).warning(message)


def _warn_of_the_reverse(path: str, stored: Any, task: Any) -> None:
    """Warn where a model was trained from the language that the task translates into, to the one that it reads.

    Other names are no fault: a pair may be called `src-tgt` in one folder, and `en-de` in another.
    """
    trained, wanted = (
        (getattr(options, "source_lang", None), getattr(options, "target_lang", None))
        for options in (
            getattr(stored, "task", None),
            getattr(task, "cfg", None) or getattr(task, "args", None),
        )
    )
    source, target = trained
    if source and target and source != target and wanted == (target, source):
        _warn(
            f"checkpoint {path}: was trained for {source}-{target}, and is to decode {target}-{source} here: check "
            "--source-lang and --target-lang"
        )


def with_reasons(load: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap fairseq's `load_model_ensemble_and_task`, whose errors do not say which file or option to change.

    A call raises `CheckpointError` where a file is missing, where the dictionaries are not those of its training, and
    where an overridden option does not exist or does not fit. It warns where the model translates the other way.
    """

    @functools.wraps(load)
    def load_model_ensemble_and_task(
        filenames: list[str],
        arg_overrides: Any = None,
        task: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if "" in filenames:
            raise CheckpointError(
                "--path (or --lm-path) has a name that is empty: name a file of fairseq-train"
            )
        try:
            with loading_models():
                loaded = load(filenames, arg_overrides, task, *args, **kwargs)
            _warn_of_the_reverse(":".join(filenames), loaded[1], loaded[2])
            return loaded
        except OSError as error:
            missing = str(error).partition("Model file not found: ")[2]
            if not missing:
                raise
            raise CheckpointError(
                f"checkpoint {missing}: no such file; check --path (or --lm-path)"
            ) from None
        except Exception as error:
            first, *others = str(error).strip().splitlines() or [""]
            if isinstance(error, AggdecError) or not first.startswith(
                ("Error(s) in loading", "--", "Missing key")
            ):
                # else: weights, options of a model, or overrides that do not go together
                raise
            reason = (
                others[-1].strip(" \t.")[:200] if first.startswith("Error") else first
            )
            folder = getattr(
                getattr(task, "cfg", None) or getattr(task, "args", None),
                "data",
                "the data folder",
            )
            advice = (
                f"check whether the dictionaries in {folder} are those of its training"
            )
            advice += ", and --model-overrides" if arg_overrides else ""
            if ".moe_layer." in str(error):
                reason = "a mixture of experts"
                advice = "only some branches of fairseq have such models"
            raise CheckpointError(
                f"checkpoint {':'.join(filenames)}: {reason}: {advice}"
            ) from error

    return load_model_ensemble_and_task
