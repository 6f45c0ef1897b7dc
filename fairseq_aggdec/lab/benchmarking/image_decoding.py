"""Decodes images in three modes: greedy, exact and approximate blockwise decoding (papers/004 §5.2 and §7.2)."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from fairseq import checkpoint_utils
from fairseq.models import BaseFairseqModel

from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.data.image_tokens import to_image
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import written_whole
from fairseq_aggdec.lab.benchmarking import machine
from fairseq_aggdec.lab.benchmarking.fairseq_runner import FairseqRunner
from fairseq_aggdec.lab.benchmarking.image_record import APPROXIMATE, BASELINE, EXACT, ImageRecord, Quality
from fairseq_aggdec.lab.benchmarking.modes import Mode
from fairseq_aggdec.lab.benchmarking.record import Record, run_of
from fairseq_aggdec.lab.benchmarking.results import ModeResult
from fairseq_aggdec.lab.benchmarking.rounds import compare
from fairseq_aggdec.lab.evaluation.image_grid import draw_grid, enlarged
from fairseq_aggdec.lab.evaluation.image_quality import identical_share, squared_error
from fairseq_aggdec.models.blockwise_transformer import proposal_heads
from fairseq_aggdec.tasks.super_resolution import SuperResolutionTask

_ROWS = 6  # images in one PNG file

Loaded = tuple[SuperResolutionTask, BaseFairseqModel]


@dataclass(frozen=True)
class Settings:
    """How to decode."""

    split: str = "test"
    limit: int | None = None
    """number of images, from the first one; None for all"""
    block_size: int = 0
    """number of proposal heads to use; 0 for all"""
    distance: float = 2.0
    """ε: approximate decoding accepts an intensity that differs from the model's by at most this, of 255"""
    batch_size: int = 1
    repeats: int = 3


@dataclass
class DecodedImages:
    """Images, each H x W x C, uint8, and their record."""

    inputs: list[np.ndarray]
    """the small images"""
    originals: list[np.ndarray]
    """the large images that the outputs are compared with"""
    outputs: dict[str, list[np.ndarray]]
    """the decoded images, by mode"""
    record: ImageRecord


def load(path: str, data: str, device: str = "cpu") -> Loaded:
    """A super-resolution model and its task, with the image sizes and splits of its training.

    Args:
        path: checkpoint of a model with proposal heads.
        data: a `.npz` file or folder of images.
        device: `cpu` or `cuda`.

    Raises:
        AggdecError: the checkpoint is of another task or has no proposal heads, or there is no such device.
    """
    if device != "cpu" and not torch.cuda.is_available():
        raise AggdecError(f"--device {device}: PyTorch finds no CUDA device; check nvidia-smi, or use --device cpu")
    _check_checkpoint(path)
    overrides = {"data": data, "bf16": False, "fp16": False, "cpu": device == "cpu"}  # as for decoding
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([path], arg_overrides=overrides)
    if proposal_heads(model) == 0:
        raise AggdecError(f"{path}: a model without proposal heads; train them with --arch blockwise_transformer")
    model.to(device)
    model.prepare_for_inference_(Namespace(generation=Namespace()))  # fairseq-generate's defaults
    return task, model


def _check_checkpoint(path: str) -> None:
    state = read_checkpoint(path)
    options = state.get("args") or (state.get("cfg") or {}).get("task") or {}
    name = options.get("_name") if hasattr(options, "get") else getattr(options, "task", None)
    if name != "super_resolution":
        raise AggdecError(f"{path}: trained for --task {name}; give a model of --task super_resolution")


def decode(
    task: SuperResolutionTask, model: BaseFairseqModel, settings: Settings, title: str, command: str
) -> DecodedImages:
    """Decode a split in all three modes.

    Args:
        task, model: from `load`.
        settings: how to decode.
        title, command: for the record.

    Raises:
        AggdecError: the split, the images or the settings cannot be used.
    """
    task.load_dataset(settings.split)
    dataset = task.dataset(settings.split)
    numbers = range(len(dataset))[: settings.limit]
    starts = range(0, len(numbers), settings.batch_size)
    batches = [dataset.collater([dataset[i] for i in numbers[first : first + settings.batch_size]]) for first in starts]
    runners = [_runner(task, model, batches, mode, settings) for mode in (BASELINE, EXACT, APPROXIMATE)]
    results = compare(runners, settings.repeats)
    inputs, originals = list(dataset.src.images[: len(numbers)]), list(dataset.tgt.images[: len(numbers)])
    outputs = {result.mode.name: _images(task, result) for result in results}
    quality = {mode: _quality(images, originals, outputs[BASELINE]) for mode, images in outputs.items()}
    size = task.sizes.output_size
    bicubic = [
        squared_error(enlarged(image, size), original) for image, original in zip(inputs, originals, strict=True)
    ]
    record = Record(
        title=f"{title}, {task.sizes}, {len(numbers)} images",
        command=command,
        date=machine.now(),
        commit=machine.commit(),
        machine=machine.machine(),
        source_tokens=[task.sizes.input_tokens + 1] * len(numbers),
        edit_ratios=[],  # no mode copies from its input
        runs=[run_of(result, "fp32") for result in results],
    )
    return DecodedImages(inputs, originals, outputs, ImageRecord(record, settings.distance, bicubic, quality))


def _runner(
    task: SuperResolutionTask, model: BaseFairseqModel, batches: Sequence[dict], mode: str, settings: Settings
) -> FairseqRunner:
    task.cfg.accept_distance = settings.distance if mode == APPROXIMATE else None
    task.cfg.block_size = settings.block_size
    return FairseqRunner(task, [model], batches, Mode(mode, BASELINE if mode == BASELINE else EXACT))


def _images(task: SuperResolutionTask, result: ModeResult) -> list[np.ndarray]:
    sizes, dictionary = task.sizes, task.target_dictionary
    return [
        to_image(torch.tensor(result.outputs[number].tokens), sizes.output_size, sizes.channels, dictionary)
        for number in sorted(result.outputs)
    ]


def _quality(images: Sequence[np.ndarray], originals: Sequence[np.ndarray], greedy: Sequence[np.ndarray]) -> Quality:
    return Quality(
        [squared_error(image, original) for image, original in zip(images, originals, strict=True)],
        [identical_share(image, other) for image, other in zip(images, greedy, strict=True)],
    )


def write(decoded: DecodedImages, batch_size: int, pictures: int, folder: Path) -> str:
    """Write record.json, quality.json, table.md and grid-1.png, grid-2.png, ... into a folder; return the table.

    Args:
        decoded: from `decode`.
        batch_size: images in a batch.
        pictures: number of images that are drawn.
        folder: created if needed.
    """
    record = decoded.record
    record.save(folder)
    machine_text = machine.describe(record.record.machine)
    text = f"{record.record.title}; batch size {batch_size}; {machine_text}\n\n{record.table()}\n"
    with written_whole(folder / "table.md") as partial:
        partial.write_text(text, encoding="utf-8")
    _draw(decoded, pictures, folder)
    return text


def _draw(decoded: DecodedImages, count: int, folder: Path) -> None:
    small, large = decoded.inputs[0].shape[0], decoded.originals[0].shape[0]
    columns = {
        f"input\n{small} x {small}": decoded.inputs,
        f"greedy\n{large} x {large}": decoded.outputs[BASELINE],
        f"approximate\nwithin {decoded.record.distance:g}": decoded.outputs[APPROXIMATE],
        f"original\n{large} x {large}": decoded.originals,
    }
    for page, first in enumerate(range(0, min(count, len(decoded.inputs)), _ROWS), start=1):
        shown = slice(first, min(first + _ROWS, count))
        draw_grid({label: images[shown] for label, images in columns.items()}, folder / f"grid-{page}.png")
