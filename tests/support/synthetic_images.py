"""Images that a tiny model learns something about in seconds: plain colours with a brighter corner."""

from pathlib import Path

import numpy as np


def make_images(
    count: int, size: int = 12, channels: int = 3, seed: int = 1
) -> np.ndarray:
    """N x size x size x C, uint8, all different."""
    rng = np.random.default_rng(seed)
    images = np.zeros((count, size, size, channels), dtype=np.uint8)
    images += rng.choice(np.arange(10, 200, 3), size=(count, 1, 1, channels)).astype(
        np.uint8
    )
    images[:, : size // 2, : size // 2] += rng.choice(
        np.arange(5, 50, 5), size=(count, 1, 1, 1)
    ).astype(np.uint8)
    images[:, 0, 0, 0] = np.arange(count) % 250
    return images


def write_npz(path: Path, images: np.ndarray) -> Path:
    """As numpy.savez does it."""
    np.savez_compressed(path, images=images)
    return path
