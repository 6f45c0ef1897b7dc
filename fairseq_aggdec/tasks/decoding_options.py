"""Checks and interpretation of decoding options, by the table of modes."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from fairseq_aggdec.engine.arithmetic import Arithmetic, Precision
from fairseq_aggdec.errors import AggdecError, check_least, option_name
from fairseq_aggdec.generation.modes import DRAFTS, MODES, readers
from fairseq_aggdec.models.blockwise_transformer import proposal_heads
from fairseq_aggdec.tasks.acceptance_options import check_acceptance_options
from fairseq_aggdec.tasks.option_fields import ArithmeticOptions, CopyingOptions, DraftingOptions

_OPTIONS = [option for kind in (CopyingOptions, DraftingOptions, ArithmeticOptions) for option in fields(kind)]


def check_decoding_options(cfg: Any) -> None:
    """Check options before a model is loaded.

    Raises:
        AggdecError: a value makes no sense, options exclude each other, or the mode does not read one.
    """
    mode = str(cfg.decoding)
    if mode not in MODES:
        raise AggdecError(f"--decoding {mode}: choose from {', '.join(MODES)}")
    precisions = [f"--{name}" for name in ("int8", "bf16", "fp16") if getattr(cfg, name)]
    if len(precisions) > 1:
        raise AggdecError(f"{' and '.join(precisions)}: one precision at a time")
    on_gpu = torch.cuda.is_available() and not cfg.cpu
    if cfg.bit_exact and precisions in ([["--bf16"]] if on_gpu else [["--bf16"], ["--fp16"]]):
        raise AggdecError(
            f"--bit-exact {precisions[0]}: same bits need this plugin's kernels, which compute in single precision and "
            "in --int8 on a CPU, and in --fp16 on a GPU: leave one of the two out"
        )
    for option in _OPTIONS:
        modes = readers(option.name)
        if getattr(cfg, option.name) != option.default and mode not in modes:
            raise AggdecError(
                f"{option_name(option.name)} is read by --decoding {', '.join(modes)} only, and not by {mode}: leave "
                "it out"
            )
    if cfg.draft_file is not None and cfg.drafter_path is not None:
        raise AggdecError("--draft-file does not go with --drafter-path: a draft is from a file or from a model")
    if cfg.draft_file is not None and not Path(cfg.draft_file).exists():
        raise AggdecError(f"--draft-file {cfg.draft_file}: no such file; check the path")
    resolved_mode(cfg)
    check_least(cfg, 0, "max_draft_len")
    if cfg.drafts not in DRAFTS:
        raise AggdecError(f"--drafts {cfg.drafts}: choose {' or '.join(DRAFTS)}")
    if cfg.block_size < 0:
        raise AggdecError(
            f"--block-size {cfg.block_size}: give at least 1, or leave it out for the default of the checkpoint"
        )
    check_acceptance_options(cfg)


def resolved_mode(cfg: Any, models: Sequence[Any] = ()) -> str:
    """The value of --decoding, or the mode for which `aggressive` stands; `models` is empty before they are loaded.

    Raises:
        AggdecError: the mode needs a drafter or proposal heads, and there are none.
    """
    mode = str(cfg.decoding)
    has_heads = any(proposal_heads(model) > 0 for model in models)
    needs_drafter = bool(cfg.block_size and MODES[mode].has_beam)
    if mode == "aggressive":
        mode = "gad" if cfg.drafter_path else "blockwise" if has_heads and not cfg.draft_file else "iad"
        needs_drafter = bool(mode == "iad" and cfg.block_size and models)
    if needs_drafter and not cfg.drafter_path:
        raise AggdecError(
            f"--block-size {cfg.block_size} needs a drafter: name its checkpoint with --drafter-path, or leave it out"
        )
    if MODES[mode].needs_drafter and not cfg.drafter_path:
        raise AggdecError(f"--decoding {mode} needs a drafter: name its checkpoint with --drafter-path")
    if mode == "blockwise" and models and not has_heads:
        model = f"--path {cfg.path}" if cfg.path else "this one"
        raise AggdecError(
            f"--decoding blockwise needs a model with proposal heads, and {model} has none: train them with --arch "
            "blockwise_transformer --base-checkpoint"
        )
    return mode


def heads_to_use(cfg: Any, models: Sequence[Any]) -> int:
    """The number of heads that `blockwise` uses: --block-size, or all heads of the first model with heads.

    Raises:
        AggdecError: the model has fewer heads.
    """
    heads = next(filter(None, map(proposal_heads, models)), 0)
    if cfg.block_size > heads:
        raise AggdecError(f"--block-size {cfg.block_size}: the model has {heads} heads; give no more")
    return cfg.block_size or heads


def arithmetic_of(cfg: Any) -> Arithmetic:
    """The arithmetic by --int8, --bf16 and --bit-exact."""
    precision: Precision = "int8" if cfg.int8 else "bf16" if cfg.bf16 else "own"
    return Arithmetic(precision, cfg.bit_exact)
