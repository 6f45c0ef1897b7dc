"""Options of fairseq's search that this plugin's modes cannot honour."""

import math
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Optional

from fairseq.dataclass import FairseqDataclass
from omegaconf import II

from fairseq_aggdec.errors import AggdecError, check_least, option_name
from fairseq_aggdec.generation.modes import MODES


@dataclass
class RefusableOptions(FairseqDataclass):
    """Fields through which a task reads these options before a model is loaded; they add no command-line options."""

    sampling: bool = II("generation.sampling")
    nbest: int = II("generation.nbest")
    constraints: Optional[str] = II("generation.constraints")  # noqa: UP045 (fairseq reads the annotation)
    lm_path: Optional[str] = II("generation.lm_path")  # noqa: UP045
    diverse_beam_groups: int = II("generation.diverse_beam_groups")
    diversity_rate: float = II("generation.diversity_rate")
    print_alignment: Optional[str] = II("generation.print_alignment")  # noqa: UP045
    retain_dropout: bool = II("generation.retain_dropout")
    score_reference: bool = II("generation.score_reference")
    pipeline_model_parallel: bool = II("distributed_training.pipeline_model_parallel")
    beam: int = II("generation.beam")
    lenpen: float = II("generation.lenpen")
    unkpen: float = II("generation.unkpen")
    temperature: float = II("generation.temperature")
    max_len_a: float = II("generation.max_len_a")


def refuse(decoding: str, options: Any, lm_model: Any = None, prefix_fn: Callable | None = None) -> None:
    """Raise `AggdecError` for a value that makes no sense, and, naming all, for options that the modes do not follow.

    Absent ones have their defaults.
    """
    check_least(options, 1, "beam", "nbest")
    for name in ("lenpen", "unkpen", "temperature", "max_len_a"):
        value = getattr(options, name, 0.0)
        if not math.isfinite(value) and not (name == "unkpen" and value > 0):  # infinity bans unknown words
            raise AggdecError(f"{option_name(name)} {value}: must be a finite number")
    wanted = {
        "--sampling": getattr(options, "sampling", False),
        "--nbest": getattr(options, "nbest", 1) > 1 and not MODES[decoding].has_beam,
        "--constraints": getattr(options, "constraints", None),
        "--lm-path": getattr(options, "lm_path", None) or lm_model is not None,
        "--diverse-beam-groups": getattr(options, "diverse_beam_groups", -1) > 0,
        "--diversity-rate": getattr(options, "diversity_rate", -1.0) > -1,
        "--print-alignment": getattr(options, "print_alignment", None),
        "--retain-dropout": getattr(options, "retain_dropout", False),
        "--pipeline-model-parallel": getattr(options, "pipeline_model_parallel", False),  # M2M-100 12B
        "prefix_allowed_tokens_fn": prefix_fn is not None,
    }
    refused = [name for name, is_set in wanted.items() if is_set]
    if refused:
        raise AggdecError(
            f"--decoding {decoding} cannot honour {', '.join(refused)}: leave it out, or use --decoding beam"
        )


def refuse_early(options: Any) -> None:
    """Call `refuse` before models are loaded, by the fields of `RefusableOptions` and `decoding`."""
    if options.decoding == "beam":
        return
    values = {field.name: getattr(options, field.name, None) for field in fields(RefusableOptions)}
    if not values["score_reference"]:  # --score-reference decodes nothing
        refuse(options.decoding, Namespace(**{name: value for name, value in values.items() if value is not None}))
