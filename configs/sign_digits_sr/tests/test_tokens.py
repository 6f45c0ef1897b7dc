"""Images as sequences."""

import numpy as np
import pytest
import torch
from super_resolution.tokens import intensity_dictionary, to_image, to_tokens

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.acceptance import values_of

DICTIONARY = intensity_dictionary()


def test_dictionary_is_the_intensities_in_order() -> None:
    assert len(DICTIONARY) == 256 + DICTIONARY.nspecial
    assert DICTIONARY.symbols[DICTIONARY.nspecial :] == [
        str(intensity) for intensity in range(256)
    ]
    values = values_of(DICTIONARY.symbols)  # what --accept-distance measures
    assert values[DICTIONARY.nspecial :].tolist() == list(range(256))
    assert values[: DICTIONARY.nspecial].isnan().all()


def test_raster_order_with_channels_next_to_each_other() -> None:
    image = np.array(
        [[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [10, 11, 255]]], dtype=np.uint8
    )
    tokens = to_tokens(image, DICTIONARY)
    assert DICTIONARY.string(tokens) == "1 2 3 4 5 6 7 8 9 10 11 255"
    assert tokens[-1] == DICTIONARY.eos()
    assert tokens.dtype == torch.long
    assert (to_image(tokens, 2, 3, DICTIONARY) == image).all()


@pytest.mark.parametrize(
    ("tokens", "message"),
    [([5, 6, 7], "3 tokens are no image of 2 x 2"), ([5, 6, 3, 7], "no intensities")],
)
def test_what_is_no_image(tokens: list[int], message: str) -> None:
    with pytest.raises(AggdecError, match=message):
        to_image(torch.tensor(tokens, dtype=torch.long), 2, 1, DICTIONARY)
