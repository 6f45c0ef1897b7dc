"""`Decoding` as options of fairseq's tasks, and fairseq's options that this plugin's modes cannot honour."""

import math
from argparse import Namespace
from collections.abc import Callable
from dataclasses import field, fields, make_dataclass
from typing import Any, Optional

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel
from omegaconf import II
from omegaconf.errors import InterpolationKeyError

from fairseq_aggdec.errors import option_name, refuse_all, too_small
from fairseq_aggdec.generation.modes import MODES, Mode
from fairseq_aggdec.generation.options import Decoding, help_of, name_of, type_of
from fairseq_aggdec.tasks.data_folder import TaskConfig

OF_FAIRSEQ = {
    "common": "bf16 fp16 cpu",
    "common_eval": "path",
    "dataset": "num_shards shard_id",
    "distributed_training": "pipeline_model_parallel",
    "generation": "sampling nbest constraints lm_path diverse_beam_groups diversity_rate print_alignment "
    "retain_dropout score_reference beam lenpen unkpen temperature max_len_a",
}
"""fairseq's options that a task reads before a model is loaded, by the part of fairseq's configuration"""


def _fields() -> list[tuple[str, Any, Any]]:
    """Names, types and defaults for fairseq: options of this plugin have a help text, those of fairseq none."""
    found: list[tuple[str, Any, Any]] = [
        (name, Any, II(f"{part}.{name}"))
        for part, names in OF_FAIRSEQ.items()
        for name in names.split()
    ]
    for option in fields(Decoding):
        kind, may_be_none = type_of(option)
        text = help_of(option)
        if text is not None:
            annotation = Optional[kind] if may_be_none else kind  # noqa: UP045 (fairseq reads it)
            found.append(
                (
                    name_of(option),
                    annotation,
                    field(default=option.default, metadata={"help": text}),
                )
            )
    return found


DecodingOptions: Any = make_dataclass(
    "DecodingOptions",
    _fields(),
    bases=(FairseqDataclass,),
    namespace={
        "__module__": __name__,
        "__doc__": "Options that every task of this plugin has, for the command line and for hydra.",
    },
)


def options_of(given: TaskConfig) -> Namespace:
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
        setattr(
            options,
            option.name,
            None if isinstance(value, str) and value.startswith("${") else value,
        )
    return options


def decoding_of(options: Namespace) -> Decoding:
    """How to decode by `options_of`."""
    return Decoding.from_args(
        options, on_gpu=torch.cuda.is_available() and not options.cpu
    )


def check_options(given: TaskConfig) -> None:
    """Raise `AggdecError` for all faults of a task's configuration, or of a command line, before a model is loaded."""
    options = options_of(given)
    decoding = decoding_of(options)
    faults = decoding.faults()
    # --score-reference decodes nothing
    if (
        decoding.mode in MODES
        and not decoding.row.is_fairseqs
        and not options.score_reference
    ):
        faults += refused(decoding.row, options)
    refuse_all(faults)


def refused(
    mode: Mode,
    options: TaskConfig,
    lm_model: BaseFairseqModel | None = None,
    prefix_fn: Callable | None = None,
) -> list[str]:
    """A sentence for each value that makes no sense, and one for all options that a mode of this plugin cannot honour.

    `options`: fairseq's; absent ones and None have their defaults.
    """

    def value(name: str, default: Any = None) -> Any:
        found = getattr(options, name, None)
        return default if found is None else found

    faults = too_small(options, 1, "beam", "nbest")
    for name in ("lenpen", "unkpen", "temperature", "max_len_a"):
        number = value(name, 0.0)
        # infinity bans unknown words
        if not math.isfinite(number) and not (name == "unkpen" and number > 0):
            faults.append(f"{option_name(name)} {number}: must be a finite number")
    wanted = {
        "--sampling": value("sampling"),
        "--nbest": value("nbest", 1) > 1 and not mode.has_beam,
        "--constraints": value("constraints"),
        "--lm-path": value("lm_path") or lm_model is not None,
        "--diverse-beam-groups": value("diverse_beam_groups", -1) > 0,
        "--diversity-rate": value("diversity_rate", -1.0) > -1,
        "--print-alignment": value("print_alignment"),
        "--retain-dropout": value("retain_dropout"),
        "--pipeline-model-parallel": value("pipeline_model_parallel"),  # M2M-100 12B
        "prefix_allowed_tokens_fn": prefix_fn is not None,
    }
    names = [name for name, is_set in wanted.items() if is_set]
    if names:
        faults.append(
            f"--decoding {mode.name} cannot honour {', '.join(names)}: leave it out, or use --decoding beam"
        )
    return faults
