"""Options of the modes that copy their drafts from the source."""

from fairseq_aggdec.errors import AggdecError, check_least
from fairseq_aggdec.generation.drafting import CopyLimits
from fairseq_aggdec.tasks.option_fields import CopyingOptions


def check_copying_options(cfg: CopyingOptions) -> None:
    """Raises `AggdecError` for a value that makes no sense."""
    check_least(cfg, 0, "max_draft_len", "max_suffix")
    check_least(cfg, 1, "min_suffix")
    if 0 < cfg.max_suffix < cfg.min_suffix:
        raise AggdecError(f"--max-suffix {cfg.max_suffix} is below --min-suffix {cfg.min_suffix}: nothing could match")


def copy_limits_of(cfg: CopyingOptions) -> CopyLimits:
    """The limits that the options set."""
    return CopyLimits(cfg.min_suffix, cfg.max_suffix, cfg.max_draft_len)
