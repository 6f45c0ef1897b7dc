"""Draws several versions of the same images side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from fairseq_aggdec.files import written_whole

_CELL = 128  # smallest side of an image in the picture, in pixels
_GAP = 8
_TEXT = 14
_LABEL = 2 * _TEXT + _GAP


def draw_grid(columns: Mapping[str, Sequence[np.ndarray]], path: Path) -> None:
    """Write a PNG file with a row for each image and a labelled column for each version.

    Args:
        columns: the images of each column by its label, equally many in each: H x W x C, uint8, C 1 or 3, of any size.
            A label may have two lines.
        path: path of the file.
    """
    rows = max(map(len, columns.values()))
    side = max(image.shape[0] for images in columns.values() for image in images)
    cell = side * max(1, -(-_CELL // side))
    size = (_GAP + len(columns) * (cell + _GAP), _LABEL + _GAP + rows * (cell + _GAP))
    picture = Image.new("RGB", size, "white")
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(size=_TEXT)
    for column, (label, images) in enumerate(columns.items()):
        left = _GAP + column * (cell + _GAP)
        draw.multiline_text((left + cell // 2, _LABEL), label, "black", font, anchor="md", align="center", spacing=2)
        for row, image in enumerate(images):
            pixels = Image.fromarray(image.squeeze(-1) if image.shape[-1] == 1 else image)
            enlarged = pixels.resize((cell, cell), Image.Resampling.NEAREST).convert("RGB")
            picture.paste(enlarged, (left, _LABEL + _GAP + row * (cell + _GAP)))
    with written_whole(path) as partial:
        picture.save(partial, format="PNG", optimize=True)


def enlarged(image: np.ndarray, size: int) -> np.ndarray:
    """An image enlarged by bicubic interpolation, the baseline of super-resolution.

    Args:
        image: H x W x C, uint8.
        size: pixels on a side.

    Returns:
        size x size x C.
    """
    pixels = Image.fromarray(image.squeeze(-1) if image.shape[-1] == 1 else image)
    return np.asarray(pixels.resize((size, size), Image.Resampling.BICUBIC)).reshape(size, size, -1)
