"""Reading, splitting and reducing images."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from super_resolution.images import make_splits, open_images, read_outputs
from super_resolution.tokens import ImageSizes

from fairseq_aggdec.errors import AggdecError
from tests.support.synthetic_images import make_images, write_npz

COLOUR, GREY = ImageSizes(2, 4, 3), ImageSizes(2, 4, 1)


def test_pixels_are_means_of_their_areas_in_the_middle_square(tmp_path: Path) -> None:
    wide = np.zeros((1, 8, 12, 3), dtype=np.uint8)
    wide[:, :, :2] = wide[:, :, -2:] = 255  # cut off
    wide[:, :2, 2:4] = [[[0, 40, 80], [0, 40, 80]], [[200, 40, 80], [200, 40, 80]]]
    outputs = read_outputs(
        open_images(write_npz(tmp_path / "a.npz", wide), False), [0], COLOUR
    )
    assert outputs[0, 0, 0].tolist() == [100, 40, 80]
    assert outputs[0, 1:].max() == 0
    assert outputs[0, :, 1:].max() == 0


def test_grey(tmp_path: Path) -> None:
    grey = make_images(2, size=4, channels=1)
    for number, stored in enumerate((grey, grey[..., 0], grey.repeat(3, axis=-1))):
        images = open_images(write_npz(tmp_path / f"{number}.npz", stored), grey=True)
        assert (read_outputs(images, [0, 1], GREY) == grey).all()
    colour = make_images(1, size=4)
    images = open_images(write_npz(tmp_path / "colour.npz", colour), grey=True)
    luma = colour @ np.array([0.299, 0.587, 0.114])
    assert np.abs(read_outputs(images, [0], GREY)[..., 0] - luma).max() <= 1


def test_a_folder(tmp_path: Path) -> None:
    originals = make_images(4, size=4)
    (tmp_path / "more").mkdir()
    for number, image in enumerate(originals):
        Image.fromarray(image).save(
            tmp_path / ("more" if number % 2 else "") / f"{number}.png"
        )
    Image.fromarray(originals[0]).convert("RGBA").save(tmp_path / "transparent.png")
    (tmp_path / "LICENSE.txt").write_text("not an image")
    images = open_images(tmp_path, grey=False)
    assert list(images.names) == [
        "0.png",
        "2.png",
        "more/1.png",
        "more/3.png",
        "transparent.png",
    ]
    assert (read_outputs(images, [0, 3, 4], COLOUR) == originals[[0, 3, 0]]).all()


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
def test_refused_files(tmp_path: Path, content: dict, message: str) -> None:
    np.savez(tmp_path / "a.npz", **content)
    with pytest.raises(AggdecError, match=message):
        open_images(tmp_path / "a.npz", grey=False)


def test_refused_paths_and_images(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(b"PK\x03\x04 cut off")
    with pytest.raises(AggdecError, match=r"a\.npz: no \.npz file, or damaged"):
        open_images(tmp_path / "a.npz", grey=False)
    with pytest.raises(AggdecError, match="no image files in this folder"):
        open_images(tmp_path, grey=False)
    (tmp_path / "a.png").write_bytes(b"\x89PNG no more")
    with pytest.raises(AggdecError, match=r"a\.png: cannot be read as an image"):
        read_outputs(open_images(tmp_path, grey=False), [0], COLOUR)
    Image.new("RGB", (9, 3)).save(tmp_path / "a.png")
    with pytest.raises(
        AggdecError, match=r"a\.png has 9 x 3 pixels, fewer than --output-size 4"
    ):
        read_outputs(open_images(tmp_path, grey=False), [0], COLOUR)


def test_the_split_depends_on_names_alone() -> None:
    names = [f"{number}.png" for number in range(50)]
    parts = make_splits(names, 5, 7)
    assert [len(parts[part]) for part in ("train", "valid", "test")] == [38, 5, 7]
    assert sorted(parts["train"] + parts["valid"] + parts["test"]) == list(range(50))
    turned = make_splits(names[::-1], 5, 7)
    for part, numbers in parts.items():
        assert {names[number] for number in numbers} == {
            names[::-1][number] for number in turned[part]
        }
    assert [names[number] for number in parts["test"]] == sorted(
        (names[n] for n in parts["test"]), key=names.index
    )
