"""Reading, splitting and reducing images."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from super_resolution.images import make_splits, open_images, read_outputs
from super_resolution.tokens import ImageSizes

from fairseq_aggdec.errors import AggdecError
from tests.support.synthetic_images import make_images, write_npz

COLOUR = ImageSizes(2, 4, 3)
GREY = ImageSizes(2, 4, 1)


def test_pixels_are_means_of_their_areas_in_the_middle_square(tmp_path: Path) -> None:
    wide = np.zeros((1, 8, 12, 3), dtype=np.uint8)
    # cut off
    wide[:, :, :2] = 255
    wide[:, :, -2:] = 255
    # the four pixels of the first area
    wide[:, 0, 2:4] = [0, 40, 80]
    wide[:, 1, 2:4] = [200, 40, 80]
    images = open_images(write_npz(tmp_path / "a.npz", wide), grey=False)
    (output,) = read_outputs(images, [0], COLOUR)
    assert output[0, 0].tolist() == [100, 40, 80]
    assert output[1:].max() == 0
    assert output[:, 1:].max() == 0


def test_grey(tmp_path: Path) -> None:
    grey = make_images(2, size=4, channels=1)
    path = tmp_path / "images.npz"
    for stored in (grey, grey[..., 0], grey.repeat(3, axis=-1)):
        images = open_images(write_npz(path, stored), grey=True)
        outputs = read_outputs(
            images,
            [0, 1],
            GREY,
        )
        assert (outputs == grey).all()
    colour = make_images(1, size=4)
    images = open_images(write_npz(path, colour), grey=True)
    outputs = read_outputs(images, [0], GREY)
    luma = colour @ np.array([0.299, 0.587, 0.114])
    difference = outputs[..., 0] - luma
    assert np.abs(difference).max() <= 1


def test_a_folder(tmp_path: Path) -> None:
    originals = make_images(4, size=4)
    (tmp_path / "more").mkdir()
    names = ("0.png", "more/1.png", "2.png", "more/3.png")
    for name, original in zip(
        names,
        originals,
        strict=True,
    ):
        Image.fromarray(original).save(tmp_path / name)
    transparent = Image.fromarray(originals[0]).convert("RGBA")
    transparent.save(tmp_path / "transparent.png")
    (tmp_path / "LICENSE.txt").write_text("not an image")
    images = open_images(tmp_path, grey=False)
    assert list(images.names) == [*sorted(names), "transparent.png"]
    outputs = read_outputs(
        images,
        [0, 3, 4],
        COLOUR,
    )
    assert (outputs == originals[[0, 3, 0]]).all()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"pictures": np.zeros((2, 4, 4, 3), np.uint8)},
            "has no array `images` but pictures",
        ),
        ({"images": np.zeros((2, 4, 4, 3), np.float32)}, "is float32 of shape"),
        ({"images": np.zeros((2, 4, 4), np.uint8)}, "the images are grey: add --grey"),
    ],
)
def test_refused_files(
    tmp_path: Path,
    content: dict,
    message: str,
) -> None:
    np.savez(tmp_path / "a.npz", **content)
    with pytest.raises(AggdecError, match=message):
        open_images(tmp_path / "a.npz", grey=False)


def test_refused_paths_and_images(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    file.write_bytes(b"PK\x03\x04 cut off")
    with pytest.raises(AggdecError, match=r"a\.npz: no \.npz file, or damaged"):
        open_images(file, grey=False)
    with pytest.raises(AggdecError, match="no image files in this folder"):
        open_images(tmp_path, grey=False)
    image = tmp_path / "a.png"
    image.write_bytes(b"\x89PNG no more")
    images = open_images(tmp_path, grey=False)
    with pytest.raises(AggdecError, match=r"a\.png: cannot be read as an image"):
        read_outputs(images, [0], COLOUR)
    Image.new("RGB", (9, 3)).save(image)
    refused = r"a\.png has 9 x 3 pixels, fewer than --output-size 4"
    with pytest.raises(AggdecError, match=refused):
        read_outputs(images, [0], COLOUR)


def test_the_split_depends_on_names_alone() -> None:
    names = [f"{number}.png" for number in range(50)]
    parts = make_splits(names, 5, 7)
    sizes = {part: len(indices) for part, indices in parts.items()}
    assert sizes == {
        "train": 38,
        "valid": 5,
        "test": 7,
    }
    every = parts["train"] + parts["valid"] + parts["test"]
    assert sorted(every) == list(range(50))
    assert parts["test"] == sorted(parts["test"])
    turned = make_splits(names[::-1], 5, 7)
    for part, indices in parts.items():
        in_turned = {49 - index for index in turned[part]}
        assert {*indices} == in_turned
