"""Options of the modes that draft with a second model, and which mode may have which."""

from dataclasses import dataclass, field
from typing import Any, Optional

from fairseq.dataclass import FairseqDataclass
from omegaconf import II
from omegaconf.errors import InterpolationKeyError

from fairseq_aggdec.decoding.acceptance import Acceptance, exact, top_beta
from fairseq_aggdec.errors import AggdecError

HIGH_QUALITY = (3, 1.0)
"""top-beta and tolerance of papers/000's high-quality setting, the default of `gad++`"""

_OPTIONS = {
    "drafter_path": ("gad", "gad++", "nar", "aggressive"),
    "block_size": ("gad", "gad++", "nar", "aggressive"),
    "top_beta": ("gad++",),
    "tolerance": ("gad++",),
    "eos_argmax": ("gad++",),
}
"""option: the modes that read it"""


@dataclass
class DraftingOptions(FairseqDataclass):
    """For the command line and for hydra alike."""

    drafter_path: Optional[str] = field(  # noqa: UP045 (fairseq reads the annotation)
        default=None, metadata={"help": "gad, gad++, nar: checkpoint of the block drafter; --path is the verifier"}
    )
    block_size: int = field(
        default=0, metadata={"help": "gad, gad++, nar: tokens drafted at once; 0: what the drafter was trained for"}
    )
    top_beta: Optional[int] = field(  # noqa: UP045
        default=None,
        metadata={
            "help": "gad++: accept a drafted token among this many best ones of the verifier (default: 3; the papers' "
            "high-efficiency setting has 5)"
        },
    )
    tolerance: Optional[float] = field(  # noqa: UP045
        default=None,
        metadata={
            "help": "gad++: accept a drafted token whose log-probability falls short of the best one's by at most this "
            "(default: 1.0; the papers' high-efficiency setting has 3.0)"
        },
    )
    eos_argmax: bool = field(
        default=False,
        metadata={"help": "gad++: let a drafted end of sentence pass only where it is the verifier's best"},
    )
    path: Optional[str] = II("common_eval.path")  # noqa: UP045


def resolved_mode(cfg: Any) -> str:
    """The value of --decoding, `aggressive` replaced by what it stands for.

    Args:
        cfg: the task's configuration.

    Raises:
        AggdecError: a mode without the drafter that it needs.
    """
    mode = str(cfg.decoding)
    if mode == "aggressive":
        return "gad" if cfg.drafter_path else "iad"
    if mode in ("gad", "gad++") and not cfg.drafter_path:
        raise AggdecError(f"--decoding {mode} needs a drafter: name its checkpoint with --drafter-path")
    return mode


def check_drafting_options(cfg: Any) -> None:
    """Refuse values without meaning and options that the mode does not read.

    Raises:
        AggdecError: naming the option.
    """
    mode = str(cfg.decoding)
    for name, modes in _OPTIONS.items():
        option = "--" + name.replace("_", "-")
        if getattr(cfg, name) != getattr(DraftingOptions, name) and mode not in modes:
            raise AggdecError(
                f"{option} is read by --decoding {', '.join(modes)} only, and not by {mode}: leave it out"
            )
    resolved_mode(cfg)
    if mode == "aggressive" and cfg.block_size and not cfg.drafter_path:
        raise AggdecError(f"--block-size {cfg.block_size} needs a drafter: name its checkpoint with --drafter-path")
    if cfg.block_size < 0:
        raise AggdecError(f"--block-size {cfg.block_size}: give at least 1, or 0 for what the drafter was trained for")
    if cfg.top_beta is not None and cfg.top_beta < 1:
        raise AggdecError(
            f"--top-beta {cfg.top_beta}: must be at least 1, which accepts only the verifier's best token"
        )
    if cfg.tolerance is not None and not cfg.tolerance >= 0:
        raise AggdecError(
            f"--tolerance {cfg.tolerance}: must be at least 0, which accepts only the verifier's best token"
        )


def acceptance_of(mode: str, cfg: Any, vocabulary: int, eos: int) -> Acceptance:
    """The criterion by which a mode accepts drafted tokens.

    Args:
        mode: from `resolved_mode`.
        cfg: the task's configuration.
        vocabulary: number of the target's symbols.
        eos: end of sentence.

    Raises:
        AggdecError: --top-beta above the vocabulary.
    """
    if mode != "gad++":
        return exact
    beta = HIGH_QUALITY[0] if cfg.top_beta is None else cfg.top_beta
    tolerance = HIGH_QUALITY[1] if cfg.tolerance is None else cfg.tolerance
    if beta > vocabulary:
        raise AggdecError(f"--top-beta {beta}: the target dictionary has only {vocabulary} symbols")
    return top_beta(beta, tolerance, eos if cfg.eos_argmax else None)


def verifier_path(cfg: Any) -> str | None:
    """--path, where the task is part of fairseq's whole configuration."""
    try:
        value = cfg.path
    except InterpolationKeyError:
        return None
    return None if value is None or str(value).startswith("${") else str(value)
