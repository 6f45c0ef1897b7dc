"""Measures of images."""

import math

import numpy as np
import pytest
from super_resolution.decoding import psnr, same_pixels

BLACK = np.zeros((2, 2, 3), np.uint8)
WHITE = np.full((2, 2, 3), 255, np.uint8)


def test_psnr_is_the_mean_over_images_and_does_not_overflow() -> None:
    assert psnr([BLACK, WHITE], [WHITE, BLACK]) == 0
    assert psnr([BLACK], [BLACK + 1]) == pytest.approx(48.13, abs=0.01)
    assert psnr([BLACK, WHITE], [BLACK, BLACK]) == math.inf
    # a pixel is the same in every channel
    other = BLACK.copy()
    other[0, 0, 2] = 1
    assert same_pixels([BLACK, BLACK], [BLACK, other]) == 0.875
