"""Every fairseq / torch version difference, and nothing else.

Checkpoints. fairseq calls `torch.load` without `weights_only`; torch >= 2.6 then refuses every fairseq checkpoint,
since it holds an `argparse.Namespace` (and, after training with `--eval-bleu`, small numpy arrays). The check stays on:
a checkpoint may hold what `allowed_globals` lists; any other class is refused by name before anything of it runs, and
so are stored options that fairseq would evaluate as Python (`stored_options`). See docs/security.md.
Resuming on several workers goes through `torch.load` as well: see `_broadcast_object`.

Batches. After 0.12.2 fairseq drops the last batch unless its size is a multiple of `--required-batch-size-multiple`
(default 8): up to 7 sentences of a test set then have no output, and with `--batch-size 1` always one.
`_keep_last_batch` gives them back.

Training. fairseq's commands take `--bf16` for `--tpu` and end without torch_xla: see `_bf16_without_tpu`. `--store-ema`
averages whatever a model's state holds: see `_averaging_weights_alone`. A BART that is built from YAML takes no weights
from a checkpoint: see `_bart_with_a_task`. For non-autoregressive models see `compat_nat`.
"""

from __future__ import annotations

import argparse
import errno
import functools
import importlib.util
import os
import pickle
import re
import sys
import tarfile
from collections.abc import Callable
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from fairseq import checkpoint_utils, file_utils, options
from fairseq.data import data_utils
from fairseq.distributed import utils as distributed_utils
from fairseq.models.bart import BARTModel
from fairseq.models.ema import EMA

from fairseq_aggdec.compat import nat as compat_nat
from fairseq_aggdec.compat.stored_options import find_code
from fairseq_aggdec.errors import AggdecError, install_excepthook


class CheckpointError(AggdecError):
    """A checkpoint that cannot be used: missing, damaged, not fairseq's, or holding classes that are not allowed."""


class PlainDtype:
    """Stands in for `numpy.dtype` while a checkpoint is unpickled: numbers only.

    numpy's own unpickling trusts the stored flags, so that a forged dtype could pass raw bytes off as object pointers.
    Here only a kind (`b i u f c`), an item size and a byte order come through.
    """

    def __init__(self, code: str, *_: object) -> None:
        if not (isinstance(code, str) and re.fullmatch(r"[biufc]\d{1,2}", code)):
            raise pickle.UnpicklingError(f"numpy data of type {code!r}, which is not a number")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype = self.dtype.newbyteorder("=" if state[1] == "|" else state[1])


class PlainArray(np.ndarray):
    """Stands in for `numpy.ndarray` while a checkpoint is unpickled; saved again it is an ordinary array."""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, is_fortran, data = state
        if not isinstance(dtype, PlainDtype):
            raise pickle.UnpicklingError("a numpy array without a numeric dtype")
        super().__setstate__((1, shape, dtype.dtype, is_fortran, data))

    def __reduce__(self) -> Any:
        return np.array(self).__reduce__()


def _plain_array(*_: object) -> PlainArray:
    """Stands in for `numpy._core.multiarray._reconstruct`: an empty array that `__setstate__` fills."""
    return PlainArray((0,), np.int8)


def _plain_scalar(dtype: PlainDtype, data: bytes) -> Any:
    """Stands in for `numpy._core.multiarray.scalar`."""
    return np.frombuffer(data, dtype.dtype)[0]


def allowed_globals() -> list[Any]:
    """What a fairseq checkpoint may hold beyond tensors and Python's containers (`torch.serialization.safe_globals`).

    Found by saving with fairseq-train (plain, `--eval-bleu`, `--store-ema`, fairseq-hydra-train) and from old-style
    checkpoints; numpy moved its functions from `numpy.core` to `numpy._core` in version 2.
    """
    allowed: list[Any] = [argparse.Namespace, PlainDtype, PlainArray]
    allowed += [(PlainDtype, "numpy.dtype"), (PlainArray, "numpy.ndarray")]
    for module in ("numpy.core.multiarray", "numpy._core.multiarray"):
        allowed += [(_plain_array, f"{module}._reconstruct"), (_plain_scalar, f"{module}.scalar")]
    return allowed


def read_checkpoint(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the raw contents of a fairseq checkpoint on the CPU, nothing upgraded.

    Args:
        path: a file that fairseq-train saved, of any version.

    Raises:
        CheckpointError: the file is missing, damaged, not fairseq's, or holds a class that is not allowed.
    """
    path = os.fspath(path)
    if not os.path.exists(path):
        raise CheckpointError(f"checkpoint {path}: no such file; check the path (--path, --restore-file)")
    if not os.path.isfile(path):
        raise CheckpointError(f"checkpoint {path}: not a file; name the checkpoint itself, such as checkpoint_best.pt")
    with torch.serialization.safe_globals(allowed_globals()):
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
        except Exception as error:
            raise CheckpointError(f"checkpoint {path}: {_reason(path, error)}") from None
    if not isinstance(state, dict):
        raise CheckpointError(f"checkpoint {path}: holds a {type(state).__name__}, not a fairseq checkpoint{_ADVICE}")
    if "model" not in state or (state.get("cfg") is None and state.get("args") is None):
        keys = ", ".join(map(str, list(state)[:5])) or "nothing"
        raise CheckpointError(
            f"checkpoint {path}: not a fairseq checkpoint: it needs `model` and `cfg` (or `args`), and holds {keys}"
            f"{_ADVICE}"
        )
    _refuse_code(path, state)
    return state


def _refuse_code(path: str, state: dict[str, Any]) -> None:
    """
    Raises:
        CheckpointError: one of the stored options could run code.
    """
    found = find_code({"args": state.get("args"), "cfg": state.get("cfg")})
    if found:
        raise CheckpointError(f"checkpoint {path}: refused: its {found}; nothing was executed. {_IF_TRUSTED}")


_IF_TRUSTED = "If you trust its origin, load it in a program of your own and save it again with plain data only"
_ADVICE = "; name a file that fairseq-train saved"


def _reason(path: str, error: Exception) -> str:
    """Say why `torch.load` failed, and what to do. Runs where `allowed_globals` are in force."""
    if isinstance(error, OSError) and error.errno != errno.EINVAL:  # a short file makes torch seek before its start
        return f"cannot be read: {error.strerror or error}"
    refused: list[str] = []
    try:
        refused = torch.serialization.get_unsafe_globals_in_checkpoint(path)
    except Exception:  # not a zip archive: torch.load's own message names the first class
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
        is_torch_file = file.read(2) in (b"PK", b"\x80\x02")  # zip archive, and the pickle of torch < 1.6
    if is_torch_file:
        return f"truncated or damaged ({os.path.getsize(path):,} bytes); copy it again"
    return f"not a PyTorch file{_ADVICE}"


def _checked_loader(load: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Wrap a loader of fairseq: the allow-list for its `torch.load`, clear messages for its failures."""

    @functools.wraps(load)
    def load_checked(path: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            with torch.serialization.safe_globals(allowed_globals()):
                state = load(path, *args, **kwargs)
        except Exception:
            local_path = checkpoint_utils.PathManager.get_local_path(path)
            read_checkpoint(local_path)  # names what is wrong with the file; a sound file failed for another reason
            raise
        _refuse_code(path, state)
        return state

    return load_checked


def _open_archive(path: str, mode: str) -> tarfile.TarFile:
    """Stands in for `tarfile.open` where fairseq unpacks what `from_pretrained` is given.

    Raises:
        CheckpointError: something of it would lie outside of its folder, or is no file.
    """
    archive = tarfile.open(path, mode)  # type: ignore[call-overload] # noqa: SIM115
    archive.extraction_filter = tarfile.data_filter
    for member in archive:
        try:
            unsafe = os.path.isabs(member.name) or tarfile.data_filter(member, os.curdir) is None
        except tarfile.FilterError:
            unsafe = True
        if unsafe:
            archive.close()
            raise CheckpointError(f"archive {path}: refused: {member.name!r} would not stay within it")
    return archive


_loading: ContextVar[bool] = ContextVar("loading", default=False)


def is_loading_models() -> bool:
    """Whether fairseq is building models for checkpoints at hand, whose weights need not be fetched from elsewhere.

    fairseq says so to the task that builds a model, and not to the model.
    """
    return _loading.get()


def _checked_ensemble_loader(load: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap fairseq's `load_model_ensemble_and_task`, which looks for the files before it loads the first."""

    @functools.wraps(load)
    def load_model_ensemble_and_task(filenames: list[str], *args: Any, **kwargs: Any) -> Any:
        before = _loading.set(True)
        try:
            return load(filenames, *args, **kwargs)
        except OSError as error:
            missing = str(error).partition("Model file not found: ")[2]
            if not missing:
                raise
            raise CheckpointError(f"checkpoint {missing}: no such file; check --path (or --lm-path)") from None
        finally:
            _loading.reset(before)

    return load_model_ensemble_and_task


def _broadcast_object(obj: Any, src_rank: int, group: Any, dist_device: torch.device) -> Any:
    """Stands in for fairseq's `_broadcast_object_slow`, by which rank 0 hands a loaded checkpoint to the other workers.

    fairseq's own goes through `torch.load`, which since 2.6 refuses its configuration objects. The bytes come from a
    worker of the same job, not from a file, so torch's own broadcast of pickled objects serves.
    """
    box = [obj]
    torch.distributed.broadcast_object_list(box, src=src_rank, group=group, device=dist_device)
    return box[0]


def _keep_last_batch(batch_by_size: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """Wrap fairseq's `data_utils.batch_by_size`, whose batches are consecutive pieces of `indices`, to lose none."""

    @functools.wraps(batch_by_size)
    def keep_last_batch(indices: Any, *args: Any, fixed_shapes: Any = None, **kwargs: Any) -> list[Any]:
        if not isinstance(indices, np.ndarray):
            indices = np.fromiter(indices, dtype=np.int64, count=-1)
        if len(indices) == 0:
            return []
        try:
            batches = batch_by_size(indices, *args, fixed_shapes=fixed_shapes, **kwargs)
        except AssertionError as error:
            if "max_tokens" not in str(error):
                raise
            raise AggdecError(f"--max-tokens is less than the longest sentence has ({error}); give more") from None
        kept = sum(map(len, batches))
        if fixed_shapes is not None or kept == len(indices):
            return batches
        return [*batches, indices[kept:]]

    return keep_last_batch


def _averaging_weights_alone(init: Callable[..., None]) -> Callable[..., None]:
    """Wrap the constructor of fairseq's `EMA`, which averages all that a model's state holds.

    Integers cannot be averaged. Frozen weights must not be: they would be rounded anew at every update, and a drafter
    could no longer share its verifier's encoder. Both are copied instead, as the keys are that fairseq is told to skip.
    """

    @functools.wraps(init)
    def make(self: Any, model: Any, config: Any, device: Any = None, skip_keys: Any = None) -> None:
        frozen = {name for name, weight in model.named_parameters(remove_duplicate=False) if not weight.requires_grad}
        state = model.state_dict()
        integers = {name for name in state if torch.is_tensor(state[name]) and not state[name].is_floating_point()}
        init(self, model, config, device, {*(skip_keys or ()), *frozen, *integers})

    return make


def _bf16_without_tpu(parse: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap fairseq's `parse_args_and_arch`, which takes `--bf16` for `--tpu`: GPUs and CPUs know bfloat16, too.

    fairseq-hydra-train trains with `common.bf16` on either, and so do the other commands where there is no torch_xla
    and `--tpu` is not asked for.
    """

    @functools.wraps(parse)
    def parse_args_and_arch(parser: Any, input_args: Any = None, *args: Any, **kwargs: Any) -> Any:
        parsed = parse(parser, input_args, *args, **kwargs)
        given = parsed[0] if isinstance(parsed, tuple) else parsed
        wanted = "--tpu" in (sys.argv[1:] if input_args is None else input_args)
        if getattr(given, "tpu", False) and not wanted and importlib.util.find_spec("torch_xla") is None:
            given.tpu = False
        return parsed

    return parse_args_and_arch


def _sound_batches(parse: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap fairseq's `parse_args_and_arch`: it takes a batch of no sentences for one without a limit."""

    @functools.wraps(parse)
    def parse_args_and_arch(*args: Any, **kwargs: Any) -> Any:
        parsed = parse(*args, **kwargs)
        given = parsed[0] if isinstance(parsed, tuple) else parsed
        for name in ("batch_size", "max_tokens", "batch_size_valid", "max_tokens_valid"):
            value = getattr(given, name, None)
            if isinstance(value, int) and value < 1:
                raise AggdecError(f"--{name.replace('_', '-')} {value}: must be at least 1")
        return parsed

    return parse_args_and_arch


def _bart_with_a_task(init: Callable[..., None]) -> Callable[..., None]:
    """Wrap the constructor of fairseq's `BARTModel`, which looks up its task's name whenever weights are loaded.

    Options of a command line hold it, those of a YAML file (fairseq-hydra-train) do not. It matters for mBART alone.
    """

    @functools.wraps(init)
    def make(self: Any, args: Any, *others: Any, **options: Any) -> None:
        init(self, args, *others, **options)
        if not hasattr(self.args, "task"):
            self.args.task = None

    return make


def install() -> None:
    """Mend what differs between versions in the running process. Calling it again changes nothing."""
    if getattr(checkpoint_utils, "mended_by_aggdec", False):
        return
    checkpoint_utils.load_checkpoint_to_cpu = _checked_loader(checkpoint_utils.load_checkpoint_to_cpu)
    checkpoint_utils.load_ema_from_checkpoint = _checked_loader(checkpoint_utils.load_ema_from_checkpoint)
    checkpoint_utils.load_model_ensemble_and_task = _checked_ensemble_loader(
        checkpoint_utils.load_model_ensemble_and_task
    )
    file_utils.tarfile = SimpleNamespace(open=_open_archive)
    distributed_utils._broadcast_object_slow = _broadcast_object
    data_utils.batch_by_size = _keep_last_batch(data_utils.batch_by_size)
    BARTModel.__init__ = _bart_with_a_task(BARTModel.__init__)
    compat_nat.install()
    EMA.__init__ = _averaging_weights_alone(EMA.__init__)
    options.parse_args_and_arch = _sound_batches(_bf16_without_tpu(options.parse_args_and_arch))
    checkpoint_utils.mended_by_aggdec = True
    install_excepthook()
