"""Pictures and measures of images."""

import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fairseq_aggdec.lab.benchmarking.images import draw, psnr, same_pixels
from tests.synthetic_images import make_images

BLACK, WHITE = np.zeros((2, 2, 3), np.uint8), np.full((2, 2, 3), 255, np.uint8)


def test_psnr_is_the_mean_over_images_and_does_not_overflow() -> None:
    assert psnr([BLACK, WHITE], [WHITE, BLACK]) == 0
    assert psnr([BLACK], [BLACK + 1]) == pytest.approx(48.13, abs=0.01)
    assert psnr([BLACK, WHITE], [BLACK, BLACK]) == math.inf
    # a pixel is the same in every channel
    other = BLACK.copy()
    other[0, 0, 2] = 1
    assert same_pixels([BLACK, BLACK], [BLACK, other]) == 0.875


@pytest.mark.parametrize("channels", [1, 3])
def test_a_picture_has_a_row_an_image_and_a_column_a_version(tmp_path: Path, channels: int) -> None:
    small, large = make_images(3, 4, channels), make_images(3, 16, channels)
    draw([list(small), list(large)], tmp_path / "deep" / "pictures.png")
    with Image.open(tmp_path / "deep" / "pictures.png") as picture:
        pixels = np.asarray(picture.convert("RGB"))
    assert pixels.shape == (8 + 3 * 136, 8 + 2 * 136, 3)
    for row in range(3):
        cell = pixels[8 + 136 * row :, 144:][:128, :128]
        assert (cell[4::8, 4::8] == np.broadcast_to(large[row], (16, 16, 3))).all()
