"""All layers of an encoder or a decoder, in training mode, too."""

from typing import Any


def layers_of(stack: Any) -> list[Any]:
    """The layers of fairseq's encoder or decoder; iterating over its own list applies LayerDrop in training."""
    return [stack.layers[number] for number in range(len(stack.layers))]
