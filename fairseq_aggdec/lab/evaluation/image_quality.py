"""Measures how similar two images are."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

_PEAK = 255


def squared_error(image: np.ndarray, other: np.ndarray) -> float:
    """Mean squared difference of two images' intensities, both uint8 of the same shape."""
    return float(np.square(image.astype(np.int64) - other).mean())


def psnr(squared_errors: Iterable[float]) -> float:
    """Peak signal-to-noise ratio, the mean over images, in dB.

    Args:
        squared_errors: mean squared error of each image; if one is 0 the result is infinite.
    """
    ratios = [math.inf if error == 0 else 10 * math.log10(_PEAK**2 / error) for error in squared_errors]
    return sum(ratios) / len(ratios)


def identical_share(image: np.ndarray, other: np.ndarray) -> float:
    """The share of pixels with the same intensity in every channel; both images are H x W x C."""
    return float((image == other).all(axis=-1).mean())
