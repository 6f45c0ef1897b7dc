"""Options of the modes that copy their drafts from the source."""

from dataclasses import dataclass, field
from typing import Any

from fairseq.dataclass import FairseqDataclass

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.drafting import CopyLimits


@dataclass
class CopyingOptions(FairseqDataclass):
    """For the command line and for hydra alike."""

    max_draft_len: int = field(
        default=0,
        metadata={"help": "iad, hybrid: longest draft, in tokens (L_max of Sun et al. 2021, Table 3); 0: no limit"},
    )
    min_suffix: int = field(
        default=1,
        metadata={
            "help": "iad, hybrid: shortest output suffix, in tokens, that is looked up in the source; hybrid asks its "
            "drafter where there is only a shorter one, and copies on where the draft makes it longer"
        },
    )
    max_suffix: int = field(
        default=0,
        metadata={"help": "iad, hybrid: longest output suffix, in tokens, that is looked up; 0: no limit"},
    )


def check_copying_options(cfg: Any) -> None:
    """Refuse values without meaning.

    Args:
        cfg: the task's configuration.

    Raises:
        AggdecError: naming the option.
    """
    for name, least in (("max_draft_len", 0), ("min_suffix", 1), ("max_suffix", 0)):
        value = getattr(cfg, name)
        if value < least:
            raise AggdecError(f"--{name.replace('_', '-')} {value}: must be at least {least}")
    if 0 < cfg.max_suffix < cfg.min_suffix:
        raise AggdecError(f"--max-suffix {cfg.max_suffix} is below --min-suffix {cfg.min_suffix}: nothing could match")


def copy_limits_of(cfg: Any) -> CopyLimits:
    """What a configuration says of copying."""
    return CopyLimits(cfg.min_suffix, cfg.max_suffix, cfg.max_draft_len)
