"""`Decoding` as options of fairseq's tasks, and fairseq's own options that this plugin's modes cannot honour."""

import math
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, field, fields, make_dataclass
from typing import Any, Optional

import torch
from fairseq.dataclass import FairseqDataclass
from omegaconf import II
from omegaconf.errors import InterpolationKeyError

from fairseq_aggdec.errors import option_name, refuse_all, too_small
from fairseq_aggdec.generation.modes import MODES, Mode
from fairseq_aggdec.generation.options import Decoding, help_of, name_of, type_of


@dataclass
class OptionsOfFairseq(FairseqDataclass):
    """fairseq's options that a task reads before a model is loaded; they add no command-line options.

    fairseq-generate converts models to fp16 itself, and does not read --bf16.
    """

    path: Optional[str] = II("common_eval.path")  # noqa: UP045 (fairseq reads the annotation)
    bf16: bool = II("common.bf16")
    fp16: bool = II("common.fp16")
    cpu: bool = II("common.cpu")
    num_shards: int = II("dataset.num_shards")
    shard_id: int = II("dataset.shard_id")
    sampling: bool = II("generation.sampling")
    nbest: int = II("generation.nbest")
    constraints: Optional[str] = II("generation.constraints")  # noqa: UP045
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


def _fields() -> list[tuple[str, Any, Any]]:
    """The fields of `Decoding` that are this plugin's, as fairseq reads them: name, type, default with help text."""
    found = []
    for option in fields(Decoding):
        kind, may_be_none = type_of(option)
        text = help_of(option)
        if text is not None:
            annotation = Optional[kind] if may_be_none else kind  # noqa: UP045
            found.append((name_of(option), annotation, field(default=option.default, metadata={"help": text})))
    return found


DecodingOptions: Any = make_dataclass(
    "DecodingOptions",
    _fields(),
    bases=(OptionsOfFairseq,),
    namespace={
        "__module__": __name__,
        "__doc__": "Options that every task of this plugin has, for the command line and for hydra.",
    },
)


def options_of(given: Any) -> Namespace:
    """The options in a task's configuration or in the namespace of a legacy task.

    An absent one has its default, and None where it is fairseq's: a program may have built the task without fairseq's
    whole configuration.
    """
    options = Namespace()
    for option in fields(DecodingOptions):
        try:
            value = getattr(given, option.name, option.default)
        except InterpolationKeyError:
            value = None
        setattr(options, option.name, None if isinstance(value, str) and value.startswith("${") else value)
    return options


def decoding_of(options: Namespace) -> Decoding:
    """How to decode by `options_of`."""
    return Decoding.of(options, on_gpu=torch.cuda.is_available() and not options.cpu)


def check_options(given: Any) -> None:
    """Raise `AggdecError` for all faults of a task's configuration, or of a command line, before a model is loaded."""
    options = options_of(given)
    decoding = decoding_of(options)
    faults = decoding.faults()
    # --score-reference decodes nothing
    if decoding.mode in MODES and not decoding.row.is_fairseqs and not options.score_reference:
        of_fairseq = {own.name: getattr(options, own.name) for own in fields(OptionsOfFairseq)}
        faults += refused(
            decoding.row, Namespace(**{name: value for name, value in of_fairseq.items() if value is not None})
        )
    refuse_all(faults)


def refused(mode: Mode, options: Any, lm_model: Any = None, prefix_fn: Callable | None = None) -> list[str]:
    """A sentence for each value that makes no sense, and one for all options that a mode of this plugin cannot honour.

    `options`: fairseq's; absent ones have their defaults.
    """
    faults = too_small(options, 1, "beam", "nbest")
    for name in ("lenpen", "unkpen", "temperature", "max_len_a"):
        value = getattr(options, name, 0.0)
        if not math.isfinite(value) and not (name == "unkpen" and value > 0):  # infinity bans unknown words
            faults.append(f"{option_name(name)} {value}: must be a finite number")
    wanted = {
        "--sampling": getattr(options, "sampling", False),
        "--nbest": getattr(options, "nbest", 1) > 1 and not mode.has_beam,
        "--constraints": getattr(options, "constraints", None),
        "--lm-path": getattr(options, "lm_path", None) or lm_model is not None,
        "--diverse-beam-groups": getattr(options, "diverse_beam_groups", -1) > 0,
        "--diversity-rate": getattr(options, "diversity_rate", -1.0) > -1,
        "--print-alignment": getattr(options, "print_alignment", None),
        "--retain-dropout": getattr(options, "retain_dropout", False),
        "--pipeline-model-parallel": getattr(options, "pipeline_model_parallel", False),  # M2M-100 12B
        "prefix_allowed_tokens_fn": prefix_fn is not None,
    }
    names = [name for name, is_set in wanted.items() if is_set]
    if names:
        faults.append(f"--decoding {mode.name} cannot honour {', '.join(names)}: leave it out, or use --decoding beam")
    return faults
