"""Decodes images in three modes: greedy, exact and approximate blockwise decoding (papers/004 §5.2 and §7.2)."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import checkpoint_utils
from fairseq.models import BaseFairseqModel
from PIL import Image

from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import written_whole
from fairseq_aggdec.lab.bench.fairseq_runner import FairseqRunner
from fairseq_aggdec.lab.bench.modes import ModeSpec
from fairseq_aggdec.lab.bench.record import Record, run_of
from fairseq_aggdec.lab.bench.rounds import ModeResult, compare
from fairseq_aggdec.lab.grid import text_table
from fairseq_aggdec.models.blockwise_transformer import proposal_heads

from .task import SuperResolutionTask
from .tokens import to_image

BASELINE = "greedy"
EXACT = "blockwise"
APPROXIMATE = "approximate"
"""names of the modes"""
_CELL = 128  # pixels of a picture's side
_GAP = 8  # pixels between pictures

Loaded = tuple[SuperResolutionTask, BaseFairseqModel]


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
        raise AggdecError(
            f"--device {device}: PyTorch finds no CUDA device; check nvidia-smi, or use --device cpu"
        )
    state = read_checkpoint(path)
    options = state.get("args") or (state.get("cfg") or {}).get("task") or {}
    name = (
        options.get("_name")
        if hasattr(options, "get")
        else getattr(options, "task", None)
    )
    if name != "super_resolution":
        raise AggdecError(
            f"{path}: trained for --task {name}; give a model of --task super_resolution"
        )
    # as for decoding
    overrides = {"data": data, "bf16": False, "fp16": False, "cpu": device == "cpu"}
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task(
        [path], arg_overrides=overrides
    )
    if proposal_heads(model) == 0:
        raise AggdecError(
            f"{path}: a model without proposal heads; train them with --arch blockwise_transformer"
        )
    model.to(device)
    # fairseq-generate's defaults
    model.prepare_for_inference_(Namespace(generation=Namespace()))
    return task, model


def decode(
    task: SuperResolutionTask, model: BaseFairseqModel, args: Any, command: str
) -> tuple[Record, list[list[np.ndarray]]]:
    """Decode a split in all three modes.

    Args:
        task, model: from `load`.
        args: the options of `aggdec super-resolve`.
        command: the command line, for the record.

    Returns:
        the record, and four versions of the images, each H x W x C, uint8: small input, greedy and approximate output,
        original.

    Raises:
        AggdecError: the split, the images or the settings cannot be used.
    """
    # the images in batches
    task.load_dataset(args.gen_subset)
    dataset = task.dataset(args.gen_subset)
    numbers = range(len(dataset))[: args.limit]
    starts = range(0, len(numbers), args.batch_size)
    batches = [
        dataset.collater([dataset[i] for i in numbers[first : first + args.batch_size]])
        for first in starts
    ]
    # each mode decodes all batches, in turns with the others
    runners = []
    for name, decoding in ((BASELINE, BASELINE), (EXACT, EXACT), (APPROXIMATE, EXACT)):
        options: dict[str, Any] = (
            {} if name == BASELINE else {"block_size": args.block_size or 0}
        )
        if name == APPROXIMATE:
            options["accept_distance"] = args.accept_distance
        runners.append(
            FairseqRunner(
                task, [model], batches, ModeSpec(name, decoding, options=options)
            )
        )
    results = compare(runners, args.repeats)
    # what came out, beside the originals
    inputs = list(dataset.src.images[: len(numbers)])
    originals = list(dataset.tgt.images[: len(numbers)])
    outputs = {result.mode.name: _images(task, result) for result in results}
    runs = [run_of(result, results[0]) for result in results]
    for run in runs:
        run.batch_size = args.batch_size
        run.counts.psnr = psnr(outputs[run.mode], originals)
        run.counts.same_pixels = same_pixels(outputs[run.mode], outputs[BASELINE])
    # the record
    title = f"{args.gen_subset} of {args.data} by {args.path}"
    record = Record(
        title=f"{title}, {task.sizes}, {len(numbers)} images, ε = {args.accept_distance:g}",
        command=command,
        sentences=len(numbers),
        source_tokens=(task.sizes.input_tokens + 1) * len(numbers),
        runs=runs,
        bicubic_psnr=psnr(
            [_enlarged(image, task.sizes.output_size) for image in inputs], originals
        ),
    )
    return record, [inputs, outputs[BASELINE], outputs[APPROXIMATE], originals]


def _images(task: SuperResolutionTask, result: ModeResult) -> list[np.ndarray]:
    sizes = task.sizes
    dictionary = task.target_dictionary
    outputs = (
        torch.tensor(result.outputs[number].tokens) for number in sorted(result.outputs)
    )
    return [
        to_image(tokens, sizes.output_size, sizes.channels, dictionary)
        for tokens in outputs
    ]


def table(record: Record) -> str:
    """The results as a Markdown table, one row for each mode."""
    greedy, *_ = record.runs
    rows = [["bicubic", "", "", "", "", f"{record.bicubic_psnr:.2f}", ""]]
    for run in record.runs:
        counts = run.counts
        rows.append(
            [
                run.mode,
                f"{counts.mean_iterations:.1f}",
                f"{counts.mean_accepted_block or 0.0:.2f}",
                f"{run.milliseconds:.0f}",
                f"{run.speed_up_over(greedy):.2f}x",
                f"{counts.psnr:.2f}",
                f"{counts.same_pixels:.1%}",
            ]
        )
    heads = ["iterations", "mean accepted block", "ms an image", "speed-up"]
    return text_table(["decoding", *heads, "PSNR, dB", "greedy's pixels"], rows)


def draw(versions: Sequence[Sequence[np.ndarray]], path: Path) -> None:
    """Write a PNG file with a row for each image and a column for each version (H x W x C, uint8, of any size)."""
    side = _CELL + _GAP
    picture = Image.new(
        "RGB", (_GAP + len(versions) * side, _GAP + len(versions[0]) * side), "white"
    )
    for column, images in enumerate(versions):
        for row, image in enumerate(images):
            cell = (
                _pixels(image)
                .resize((_CELL, _CELL), Image.Resampling.NEAREST)
                .convert("RGB")
            )
            picture.paste(cell, (_GAP + column * side, _GAP + row * side))
    with written_whole(path) as partial:
        picture.save(partial, format="PNG", optimize=True)


def psnr(images: Sequence[np.ndarray], originals: Sequence[np.ndarray]) -> float:
    """Peak signal-to-noise ratio of uint8 images in dB, the mean over images; infinite if one is the original."""
    pairs = zip(images, originals, strict=True)
    errors = [
        np.square(image.astype(np.int64) - original).mean() for image, original in pairs
    ]
    with np.errstate(divide="ignore"):
        return float(np.mean(10 * np.log10(255**2 / np.array(errors))))


def same_pixels(images: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> float:
    """The share of pixels with the same intensity in every channel."""
    return float((np.stack(list(images)) == np.stack(list(others))).all(axis=-1).mean())


def _enlarged(image: np.ndarray, size: int) -> np.ndarray:
    """The image with `size` pixels a side, by bicubic interpolation: the baseline of super-resolution."""
    return np.asarray(
        _pixels(image).resize((size, size), Image.Resampling.BICUBIC)
    ).reshape(size, size, -1)


def _pixels(image: np.ndarray) -> Image.Image:
    return Image.fromarray(image.squeeze(-1) if image.shape[-1] == 1 else image)
