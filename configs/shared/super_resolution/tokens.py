"""Images as sequences of tokens, one for each intensity (papers/004 §7.2), and back.

An image is read row by row, the channels of a pixel one after another: red, green and blue of the first pixel, then of
the second. A token is an integer from 0 to 255; its symbol in the dictionary is the number in digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from fairseq.data import Dictionary
from torch import Tensor
from torch.utils.data import Dataset

from fairseq_aggdec.errors import AggdecError

INTENSITIES = 256


@dataclass(frozen=True)
class ImageSizes:
    """The sizes of the square images that a model of super-resolution reads and writes."""

    input_size: int
    """pixels on a side of an input"""
    output_size: int
    """pixels on a side of an output"""
    channels: int
    """3 for RGB, 1 for grey"""

    @property
    def input_tokens(self) -> int:
        return self.input_size**2 * self.channels

    @property
    def output_tokens(self) -> int:
        return self.output_size**2 * self.channels

    def __str__(self) -> str:
        colours = "grey" if self.channels == 1 else "RGB"
        small = self.input_size
        large = self.output_size
        return f"{colours} {small}x{small} to {large}x{large}"


def intensity_dictionary() -> Dictionary:
    """A dictionary of the intensities 0 to 255, in this order, after fairseq's special symbols."""
    dictionary = Dictionary()
    for intensity in range(INTENSITIES):
        dictionary.add_symbol(str(intensity))
    return dictionary


def to_tokens(image: np.ndarray, dictionary: Dictionary) -> Tensor:
    """The tokens of an image, EOS at the end.

    Args:
        image: H x W x C, uint8.
        dictionary: from `intensity_dictionary`.

    Returns:
        H W C + 1 token numbers.
    """
    tokens = torch.full((image.size + 1,), dictionary.eos())
    tokens[:-1] = torch.from_numpy(
        image.reshape(-1).astype(np.int64)
    ) + dictionary.index("0")
    return tokens


def to_image(
    tokens: Tensor, size: int, channels: int, dictionary: Dictionary
) -> np.ndarray:
    """The image of a sequence of tokens.

    Args:
        tokens: `size` x `size` x `channels` token numbers, with or without EOS at their end.
        size: pixels on a side.
        channels: number of channels of a pixel.
        dictionary: from `intensity_dictionary`.

    Returns:
        H x W x C, uint8.

    Raises:
        AggdecError: the number of tokens is another one, or a token is no intensity.
    """
    if tokens.numel() and int(tokens[-1]) == dictionary.eos():
        tokens = tokens[:-1]
    intensities = tokens.cpu().numpy() - dictionary.index("0")
    if intensities.size != size * size * channels:
        raise AggdecError(
            f"{intensities.size} tokens are no image of {size} x {size} pixels, {channels} channels"
        )
    if intensities.size and (intensities.min() < 0 or intensities.max() >= INTENSITIES):
        raise AggdecError(
            "the output holds tokens that are no intensities: the model is none of super-resolution"
        )
    return intensities.astype(np.uint8).reshape(size, size, channels)


class ImageTokens(Dataset):
    """Images as the sequences that fairseq's `LanguagePairDataset` takes."""

    def __init__(self, images: np.ndarray, dictionary: Dictionary) -> None:
        """
        Args:
            images: N x H x W x C, uint8.
            dictionary: from `intensity_dictionary`.
        """
        self.images = images
        self.sizes = np.full(len(images), images[0].size + 1 if len(images) else 1)
        self._dictionary = dictionary

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, number: int) -> Tensor:
        return to_tokens(self.images[number], self._dictionary)
