"""Loading a checkpoint with the plugin's task, and making batches, in Python programs."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.data import RoundRobinZipDatasets
from fairseq.dataclass.utils import _set_legacy_defaults
from fairseq.models import BaseFairseqModel
from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY, FairseqTask

from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.engine.arithmetic import BF16_ON_CPU
from fairseq_aggdec.errors import AggdecError, option_name
from fairseq_aggdec.generation.modes import AGGRESSIVE
from fairseq_aggdec.generation.options import Decoding
from fairseq_aggdec.tasks.aggressive_translation import (
    AggressiveTranslationConfig,
    AggressiveTranslationTask,
)

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
PRECISIONS = (*DTYPES, "int8")


def load(
    path: str,
    data: str,
    source_lang: str | None = None,
    target_lang: str | None = None,
    device: str | torch.device = "cpu",
    precision: str = "fp32",
    task_name: str = "translation",
    decoding: Decoding | None = None,
    **options: Any,
) -> tuple[FairseqTask, list[BaseFairseqModel]]:
    """Load a checkpoint, or several joined by `:`, and build the plugin's task with these options.

    `data`: the folder with the dictionaries and, if a split will be read, the binarised data. Languages that are None
    are inferred from the folder. `precision`: one of `PRECISIONS`; with int8 the models stay in fp32 and only the
    engine's matrix products use it. `task_name`: fairseq's name of the checkpoint's task; tasks other than
    `translation` take their options from the checkpoint. `decoding`: how generators decode for which nothing else is
    given, None: as `aggressive` does; `options`: further ones of the task.

    Raises `AggdecError` where the folder or the checkpoint cannot be used, or they do not fit each other.
    """
    if precision == "bf16" and torch.device(device).type == "cpu":
        raise AggdecError(BF16_ON_CPU)
    decoding = decoding or Decoding(AGGRESSIVE)
    if precision == "int8":
        decoding = replace(decoding, int8=True)
        precision = "fp32"
    task: FairseqTask
    languages = {"source_lang": source_lang, "target_lang": target_lang}
    given = {"data": data, **languages, **options, **decoding.options()}
    if task_name == "translation":
        config = AggressiveTranslationConfig(**given)
        # these refer to fairseq's whole configuration, which only its command lines build
        config.train_subset = "train"
        config.dataset_impl = None
        config.required_seq_len_multiple = 1
        task = AggressiveTranslationTask.setup_task(config)
    else:
        task = _task_as_trained(task_name, path.split(":")[0], given)
    models, _ = checkpoint_utils.load_model_ensemble(path.split(":"), task=task)
    for model in models:
        # fairseq-generate's defaults
        model.prepare_for_inference_(Namespace(generation=Namespace()))
    return task, [model.to(device=device, dtype=DTYPES[precision]) for model in models]


def _task_as_trained(name: str, path: str, given: dict[str, Any]) -> FairseqTask:
    """The plugin's task for fairseq's legacy task `name`, with a checkpoint's options but for those of `given`."""
    kind = TASK_REGISTRY.get(f"aggressive_{name}")
    if kind is None or f"aggressive_{name}" in TASK_DATACLASS_REGISTRY:
        known = sorted(
            task for task in TASK_REGISTRY if f"aggressive_{task}" in TASK_REGISTRY
        )
        raise AggdecError(
            f"task {name}: this plugin loads models of {', '.join(known)}"
        )
    options = trained_options(path)
    # fairseq reads these from words, and precisions are those of this run
    options |= {
        side: str(options[side])
        for side in ("left_pad_source", "left_pad_target")
        if side in options
    }
    args = Namespace(**{**options, "fp16": False, "bf16": False, **given})
    _set_legacy_defaults(args, kind)
    try:
        return kind.setup_task(args)
    except (AggdecError, AttributeError) as error:
        missing = error.__cause__ or error
        if not isinstance(missing, AttributeError) or missing.obj is not args:
            raise
        option = missing.name or ""
        raise AggdecError(
            f"task {name}: {path} was trained without {option_name(option)}: name the task of its training, or give "
            f"the option ({option}=...)"
        ) from error


def trained_options(path: str) -> dict[str, Any]:
    """The options of the task that a checkpoint was trained for; raises as `read_checkpoint`."""
    stored = read_checkpoint(path)
    trained: Any = (stored.get("cfg") or {}).get("task") or stored.get("args") or {}
    return dict(trained) if isinstance(trained, Mapping) else vars(trained)


def batches_of(
    task: FairseqTask,
    sentences: Sequence[torch.Tensor],
    size: int,
    by_length: bool = False,
    order: Sequence[int] | None = None,
) -> list[dict[str, Any]]:
    """Padded batches of `size` sentences (token numbers, EOS last); a sentence's `id` is its index in `sentences`.

    `by_length`: batch sentences of similar length, as fairseq-generate does; `order`: indices in the order in which
    they fill the batches.
    """
    lengths = [len(sentence) for sentence in sentences]
    dataset = task.build_dataset_for_inference(sentences, lengths)
    if isinstance(dataset, RoundRobinZipDatasets):
        dataset.ordered_indices()  # its items are counted in this order
    numbers = range(len(sentences)) if order is None else order
    if by_length and order is None:
        numbers = sorted(numbers, key=lengths.__getitem__)
    starts = range(0, len(sentences), size)
    return [
        dataset.collater([dataset[i] for i in numbers[first : first + size]])
        for first in starts
    ]
