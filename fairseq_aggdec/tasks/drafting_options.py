"""Options of the modes that draft with a model, and which mode reads which option of drafting."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from fairseq_aggdec.errors import AggdecError, option_name
from fairseq_aggdec.models.blockwise_transformer import proposal_heads
from fairseq_aggdec.tasks.acceptance_options import check_acceptance_options
from fairseq_aggdec.tasks.fairseq_fields import field_of_fairseq
from fairseq_aggdec.tasks.option_fields import CopyingOptions, DraftingOptions

_COPYING = ("iad", "hybrid", "aggressive")
"""not `iad++`: behind a shorter draft the model's own word would stand, where the input's was to stay"""
READ_BY = {
    **dict.fromkeys(("max_draft_len", "min_suffix", "max_suffix"), _COPYING),
    "drafter_path": ("gad", "gad++", "nar", "hybrid", "aggressive", "aggressive-beam"),
    "block_size": ("gad", "gad++", "nar", "blockwise", "hybrid", "aggressive", "aggressive-beam"),
    "top_beta": ("gad++", "iad++", "blockwise"),
    "tolerance": ("gad++", "iad++", "blockwise"),
    "eos_argmax": ("gad++", "iad++", "blockwise"),
    "full_drafts": ("iad", "gad", "hybrid", "aggressive"),
    "adaptive_draft": ("iad", "iad++", "gad", "gad++", "blockwise", "hybrid", "aggressive"),
    "accept_distance": ("gad++", "blockwise"),
    "min_block": ("gad++", "blockwise"),
}
"""option: the modes that read it"""


_DEFAULTS = {option.name: option.default for kind in (CopyingOptions, DraftingOptions) for option in fields(kind)}


def resolved_mode(cfg: Any, models: Sequence[Any] = ()) -> str:
    """The value of --decoding, or the mode that `aggressive` stands for; without models, before they are loaded.

    Raises:
        AggdecError: the mode needs a drafter or proposal heads, and there are none.
    """
    mode = str(cfg.decoding)
    has_heads = any(proposal_heads(model) > 0 for model in models)
    if mode == "aggressive":
        mode = "gad" if cfg.drafter_path else "blockwise" if has_heads else "iad"
        if mode == "iad" and cfg.block_size and models:
            raise AggdecError(
                f"--block-size {cfg.block_size} needs a drafter: name its checkpoint with --drafter-path, or a model "
                "with proposal heads as --path"
            )
    if mode == "hybrid" and models and cfg.block_size and not (cfg.drafter_path or has_heads):
        raise AggdecError(
            f"--block-size {cfg.block_size} is for what hybrid drafts where it cannot copy: name a block "
            "drafter with --drafter-path, or give a model with proposal heads as --path"
        )
    if mode == "aggressive-beam" and cfg.block_size and not cfg.drafter_path:
        raise AggdecError(f"--block-size {cfg.block_size} needs a drafter: name its checkpoint with --drafter-path")
    if mode in ("gad", "gad++") and not cfg.drafter_path:
        raise AggdecError(f"--decoding {mode} needs a drafter: name its checkpoint with --drafter-path")
    if mode == "blockwise" and models and not has_heads:
        model = f"--path {verifier_path(cfg)}" if verifier_path(cfg) else "this one"
        raise AggdecError(
            f"--decoding blockwise needs a model with proposal heads, and {model} has none: train them with --arch "
            "blockwise_transformer --base-checkpoint"
        )
    return mode


def heads_to_use(cfg: Any, models: Sequence[Any]) -> int:
    """How many heads `blockwise` and `hybrid` use: --block-size, or all heads of the first model that has any, or 0.

    Raises:
        AggdecError: the model has fewer.
    """
    heads = next(filter(None, map(proposal_heads, models)), 0)
    if cfg.block_size > heads:
        raise AggdecError(f"--block-size {cfg.block_size}: the model has {heads} heads; give no more")
    return cfg.block_size or heads


def check_drafting_options(cfg: Any) -> None:
    """Raises `AggdecError` for a value that makes no sense and for an option that the mode does not read."""
    mode = str(cfg.decoding)
    for name, modes in READ_BY.items():
        if getattr(cfg, name) != _DEFAULTS[name] and mode not in modes:
            raise AggdecError(
                f"{option_name(name)} is read by --decoding {', '.join(modes)} only, and not by {mode}: leave it out"
            )
    resolved_mode(cfg)
    if cfg.block_size < 0:
        raise AggdecError(
            f"--block-size {cfg.block_size}: give at least 1, or leave it out for what the drafter's checkpoint says"
        )
    if cfg.adaptive_draft and cfg.full_drafts:
        raise AggdecError("--adaptive-draft and --full-drafts ask for opposite things: leave one out")
    if cfg.adaptive_draft and cfg.min_block > 1:
        raise AggdecError("--adaptive-draft may draft fewer tokens than --min-block commits: leave one out")
    check_acceptance_options(cfg)


def verifier_path(cfg: Any) -> str | None:
    """The value of --path; None where a program has made the task."""
    value = field_of_fairseq(cfg, "path")
    return None if value is None else str(value)
