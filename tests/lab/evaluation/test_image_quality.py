"""Measures of images."""

import math

import numpy as np
import pytest

from fairseq_aggdec.lab.evaluation.image_quality import identical_share, psnr, squared_error


def test_squared_error_does_not_overflow() -> None:
    black, white = np.zeros((2, 2, 3), np.uint8), np.full((2, 2, 3), 255, np.uint8)
    assert squared_error(black, white) == squared_error(white, black) == 255**2
    assert squared_error(black, black) == 0


def test_psnr_is_the_mean_over_images() -> None:
    assert psnr([255**2]) == 0
    assert psnr([255**2 / 10, 255**2 / 1000]) == pytest.approx(20)
    assert psnr([1.0]) == pytest.approx(48.13, abs=0.01)
    assert psnr([0.0, 1.0]) == math.inf


def test_identical_pixels_are_so_in_every_channel() -> None:
    image = np.zeros((2, 2, 3), np.uint8)
    other = image.copy()
    other[0, 0, 2] = 1
    assert identical_share(image, image) == 1
    assert identical_share(image, other) == 0.75
