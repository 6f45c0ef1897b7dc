"""All layers of an encoder or a decoder, in training mode too."""

from typing import Any


def layers_of(stack: Any) -> list[Any]:
    """The layers of fairseq's encoder or decoder; its own list leaves some out at random where LayerDrop trains."""
    return [stack.layers[number] for number in range(len(stack.layers))]
