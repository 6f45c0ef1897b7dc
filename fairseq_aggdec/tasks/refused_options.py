"""Options of fairseq's search that this plugin's modes cannot honour."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Optional

from fairseq.dataclass import FairseqDataclass
from omegaconf import II
from omegaconf.errors import InterpolationKeyError

from fairseq_aggdec.errors import AggdecError


@dataclass
class SearchOptions(FairseqDataclass):
    """The options of fairseq's search that decide, as a task sees them before a model is loaded.

    The fields stand for those of the same name in fairseq's whole configuration; they add nothing to a command line.
    """

    sampling: bool = II("generation.sampling")
    nbest: int = II("generation.nbest")
    constraints: Optional[str] = II("generation.constraints")  # noqa: UP045 (fairseq reads the annotation)
    lm_path: Optional[str] = II("generation.lm_path")  # noqa: UP045
    diverse_beam_groups: int = II("generation.diverse_beam_groups")
    diversity_rate: float = II("generation.diversity_rate")
    print_alignment: Optional[str] = II("generation.print_alignment")  # noqa: UP045
    score_reference: bool = II("generation.score_reference")


def refuse(decoding: str, options: Any, lm_model: Any = None, prefix_fn: Callable | None = None) -> None:
    """Refuse what gives another result than a beam of one; of `aggressive-beam`, than a beam.

    Args:
        decoding: the mode, for the message.
        options: fairseq's generation options; those that are absent have fairseq's defaults.
        lm_model: a language model that a program hands over.
        prefix_fn: fairseq's `prefix_allowed_tokens_fn`.

    Raises:
        AggdecError: naming the options.
    """
    wanted = {
        "--sampling": getattr(options, "sampling", False),
        "--nbest": getattr(options, "nbest", 1) > 1 and decoding != "aggressive-beam",
        "--constraints": getattr(options, "constraints", None),
        "--lm-path": getattr(options, "lm_path", None) or lm_model is not None,
        "--diverse-beam-groups": getattr(options, "diverse_beam_groups", -1) > 0,
        "--diversity-rate": getattr(options, "diversity_rate", -1.0) > -1,
        "--print-alignment": getattr(options, "print_alignment", None),
        "prefix_allowed_tokens_fn": prefix_fn is not None,
    }
    refused = [name for name, is_set in wanted.items() if is_set]
    if refused:
        raise AggdecError(
            f"--decoding {decoding} cannot honour {', '.join(refused)}: leave it out, or use --decoding beam"
        )


def refuse_early(decoding: str, cfg: Any) -> None:
    """`refuse`, before models are loaded: what fairseq's command lines and a loaded configuration ask for.

    Args:
        decoding: the mode.
        cfg: the task's configuration, with the fields of `SearchOptions`.

    Raises:
        AggdecError: naming the options.
    """
    given = {}
    for field in fields(SearchOptions):
        try:
            value = getattr(cfg, field.name)
        except InterpolationKeyError:  # a task by itself, outside fairseq's whole configuration
            continue
        if not (isinstance(value, str) and value.startswith("${")):  # as above, not even read by omegaconf
            given[field.name] = value
    if not given.get("score_reference"):  # that decodes nothing
        refuse(decoding, Namespace(**given))
