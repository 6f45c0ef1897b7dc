"""Pictures of images side by side."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fairseq_aggdec.lab.evaluation.image_grid import draw_grid
from tests.synthetic_images import make_images


@pytest.mark.parametrize("channels", [1, 3])
def test_a_row_an_image_and_a_column_a_version(tmp_path: Path, channels: int) -> None:
    small, large = make_images(3, 4, channels), make_images(3, 16, channels)
    draw_grid({"input\n4 x 4": list(small), "original": list(large)}, tmp_path / "deep" / "grid.png")
    with Image.open(tmp_path / "deep" / "grid.png") as picture:
        assert picture.format == "PNG"
        assert picture.size == (8 + 2 * 136, 36 + 8 + 3 * 136)
        pixels = np.asarray(picture.convert("RGB"))
    assert pixels[:36].min() < 100  # a label
    for row in range(3):
        cell = pixels[44 + 136 * row : 172 + 136 * row, 144 : 144 + 128]
        assert (cell[4::8, 4::8] == np.broadcast_to(large[row], (16, 16, 3))).all()
        cell = pixels[44 + 136 * row : 172 + 136 * row, 8 : 8 + 128]
        assert (cell[16::32, 16::32] == np.broadcast_to(small[row], (4, 4, 3))).all()
