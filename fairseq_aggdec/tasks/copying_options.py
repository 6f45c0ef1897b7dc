"""Options of the modes that copy their drafts from the source."""

from dataclasses import dataclass, field

from fairseq.dataclass import FairseqDataclass

from fairseq_aggdec.errors import AggdecError, check_least
from fairseq_aggdec.generation.drafting import CopyLimits


@dataclass
class CopyingOptions(FairseqDataclass):
    """Options of a task, for the command line and for hydra."""

    max_draft_len: int = field(
        default=0,
        metadata={"help": "iad, hybrid: longest draft, in tokens (L_max of Sun et al. 2021, Table 3); 0: no limit"},
    )
    min_suffix: int = field(
        default=1,
        metadata={
            "help": "iad, hybrid: shortest output suffix, in tokens, that is looked up in the source; where only a "
            "shorter one is found, hybrid drafts with its model, and copies on where this draft makes it long enough"
        },
    )
    max_suffix: int = field(
        default=0,
        metadata={"help": "iad, hybrid: longest output suffix, in tokens, that is looked up; 0: no limit"},
    )


def check_copying_options(cfg: CopyingOptions) -> None:
    """Raises `AggdecError` for a value that makes no sense."""
    check_least(cfg, 0, "max_draft_len", "max_suffix")
    check_least(cfg, 1, "min_suffix")
    if 0 < cfg.max_suffix < cfg.min_suffix:
        raise AggdecError(f"--max-suffix {cfg.max_suffix} is below --min-suffix {cfg.min_suffix}: nothing could match")


def copy_limits_of(cfg: CopyingOptions) -> CopyLimits:
    """The limits that the options set."""
    return CopyLimits(cfg.min_suffix, cfg.max_suffix, cfg.max_draft_len)
