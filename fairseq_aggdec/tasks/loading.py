"""Loading a checkpoint with the plugin's task, and making batches, in Python programs."""

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.models import BaseFairseqModel

from fairseq_aggdec.tasks.aggressive_translation import AggressiveTranslationConfig, AggressiveTranslationTask

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
PRECISIONS = (*DTYPES, "int8")


def load(
    path: str,
    data: str,
    source_lang: str | None = None,
    target_lang: str | None = None,
    device: str | torch.device = "cpu",
    precision: str = "fp32",
    **options: Any,
) -> tuple[AggressiveTranslationTask, list[BaseFairseqModel]]:
    """Load a checkpoint, or several joined by `:`, and build the plugin's task with these options.

    `data`: the folder with the dictionaries and, if a split will be read, the binarised data. Languages that are None
    are inferred from the folder. `precision`: one of `PRECISIONS`; with int8, and with bf16 on a CPU, the models stay
    in fp32 and only the engine's matrix products use it.

    Raises `AggdecError` where the folder or the checkpoint cannot be used, or they do not fit each other.
    """
    if precision == "int8" or (precision == "bf16" and torch.device(device).type == "cpu"):
        options, precision = {**options, precision: True}, "fp32"
    if any(options.get(name) for name in ("drafter_path", "block_size", "int8", "bit_exact")):
        # the default mode `beam` refuses these options; callers set the mode of each generator
        options = {"decoding": "aggressive", **options}
    config = AggressiveTranslationConfig(data=data, source_lang=source_lang, target_lang=target_lang, **options)
    # these refer to fairseq's whole configuration, which only its command lines build
    config.train_subset, config.dataset_impl, config.required_seq_len_multiple = "train", None, 1
    task = AggressiveTranslationTask.setup_task(config)
    models, _ = checkpoint_utils.load_model_ensemble(path.split(":"), task=task)
    for model in models:
        model.prepare_for_inference_(Namespace(generation=Namespace()))  # fairseq-generate's defaults
    return task, [model.to(device=device, dtype=DTYPES[precision]) for model in models]


def batches_of(
    task: AggressiveTranslationTask,
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
    numbers = range(len(sentences)) if order is None else order
    if by_length and order is None:
        numbers = sorted(numbers, key=lengths.__getitem__)
    starts = range(0, len(sentences), size)
    return [dataset.collater([dataset[i] for i in numbers[first : first + size]]) for first in starts]
