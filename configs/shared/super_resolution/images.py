"""Images of an `.npz` file or a folder: reading, splitting into training and held-out images, resizing."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from experiments.chance import hold_out
from PIL import Image, UnidentifiedImageError
from tqdm import tqdm

from fairseq_aggdec.errors import AggdecError

from .tokens import ImageSizes

ARRAY = "images"
"""the name of the array in an `.npz` file"""
HELD_OUT = ("valid", "test")


@dataclass(frozen=True)
class Images:
    """Images of any size."""

    names: Sequence[str]
    """of each image; equal images can have the same name"""
    read: Callable[[int], Image.Image]
    """gives an image by its number; raises `AggdecError` where it cannot be read"""


def open_images(path: Path, grey: bool) -> Images:
    """Open an `.npz` file or a folder.

    Args:
        path: the file or the folder.
        grey: whether grey images are wanted; if not, a file of grey images is refused.

    Raises:
        AggdecError: there is no such file or folder, or it has no images.
    """
    if path.is_dir():
        return _in_folder(path)
    if not path.exists():
        raise AggdecError(
            f"{path}: no such file; give an .npz file with an array `{ARRAY}`, or a folder of images"
        )
    return _in_array(path, grey)


def _in_array(path: Path, grey: bool) -> Images:
    """The images in an array N x H x W (x C) of an `.npz` file."""
    try:
        content = np.load(path, allow_pickle=False)
        images = content[ARRAY] if ARRAY in getattr(content, "files", ()) else None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise AggdecError(
            f"{path}: no .npz file, or damaged ({error}); write it with numpy.savez"
        ) from error
    if images is None:
        arrays = ", ".join(getattr(content, "files", ())) or "nothing with a name"
        raise AggdecError(
            f"{path}: has no array `{ARRAY}` but {arrays}; write it with numpy.savez(FILE, {ARRAY}=...)"
        )
    channels = images.shape[-1] if images.ndim == 4 else 1 if images.ndim == 3 else 0
    if images.dtype != np.uint8 or channels not in (1, 3) or 0 in images.shape:
        raise AggdecError(
            f"{path}: `{ARRAY}` is {images.dtype} of shape {images.shape}; it must be uint8 of N x height x width "
            "x 3 (RGB), or N x height x width (grey)"
        )
    if channels == 1 and not grey:
        raise AggdecError(f"{path}: the images are grey: add --grey")
    images = images.reshape(images.shape[:3]) if channels == 1 else images
    names = [hashlib.sha256(image.tobytes()).hexdigest() for image in images]
    return Images(names, lambda number: Image.fromarray(images[number]))


def _in_folder(path: Path) -> Images:
    """The image files of a folder and its subfolders."""
    endings = Image.registered_extensions()
    files = sorted(
        file
        for file in path.rglob("*")
        if file.suffix.lower() in endings and file.is_file()
    )
    if not files:
        raise AggdecError(
            f"{path}: no image files in this folder, such as .png or .jpg"
        )

    def read(number: int) -> Image.Image:
        try:
            with Image.open(files[number]) as image:
                image.load()
                return image
        except (
            OSError,
            UnidentifiedImageError,
            SyntaxError,
            Image.DecompressionBombError,
        ) as error:
            raise AggdecError(
                f"{files[number]}: cannot be read as an image ({error}); mend or remove it"
            ) from error

    return Images([file.relative_to(path).as_posix() for file in files], read)


def make_splits(names: Sequence[str], valid: int, test: int) -> dict[str, list[int]]:
    """Split images by the hash of their names: the same images are held out on every machine, whatever their order.

    Args:
        names: the names of all images; images with the same name are in the same split.
        valid: number of different images held out for validation.
        test: number of different images held out for testing.

    Returns:
        the numbers of the images of `train`, `valid` and `test`, in order.

    Raises:
        AggdecError: there are not enough images.
    """
    wanted = {"valid": valid, "test": test}
    different = len(set(names))
    if different <= valid + test:
        raise AggdecError(
            f"{different} different images are too few to hold out {valid} and {test}: lower --valid-images and "
            "--test-images, or give more"
        )
    place = {
        name: part
        for part, chosen in hold_out(names, wanted).items()
        for name in chosen
    }
    numbers: dict[str, list[int]] = {"train": [], "valid": [], "test": []}
    for number, name in enumerate(names):
        numbers[place.get(name, "train")].append(number)
    return numbers


def read_outputs(
    images: Images, numbers: Sequence[int], sizes: ImageSizes
) -> np.ndarray:
    """Read images in the size of the output: the largest square in their middle, each pixel the mean of its area.

    Args:
        images: the original images.
        numbers: the numbers of the wanted images.
        sizes: the size and the channels to give them.

    Returns:
        N x size x size x C, uint8.

    Raises:
        AggdecError: an image is too small, or cannot be read.
    """
    size = sizes.output_size
    outputs = np.empty((len(numbers), size, size, sizes.channels), dtype=np.uint8)
    for place, number in enumerate(
        tqdm(numbers, desc="images", unit="image", disable=None, leave=False)
    ):
        image = images.read(number)
        side = min(image.size)
        if side < size:
            raise AggdecError(
                f"image {images.names[number]} has {image.width} x {image.height} pixels, fewer than --output-size "
                f"{size}: lower that, or leave the image out"
            )
        left = (image.width - side) // 2
        top = (image.height - side) // 2
        image = image.convert("L" if sizes.channels == 1 else "RGB").crop(
            (left, top, left + side, top + side)
        )
        outputs[place] = np.asarray(
            image.resize((size, size), Image.Resampling.BOX)
        ).reshape(size, size, -1)
    return outputs


def reduced(images: np.ndarray, size: int) -> np.ndarray:
    """Lowers the resolution: each pixel is the mean of its area, rounded.

    Args:
        images: N x H x H x C, uint8.
        size: pixels on a side of the result; H is a multiple of it.

    Returns:
        N x size x size x C, uint8.
    """
    count, side, _, channels = images.shape
    scale = side // size
    areas = images.reshape(count, size, scale, size, scale, channels)
    return np.floor(areas.mean(axis=(2, 4)) + 0.5).astype(np.uint8)
