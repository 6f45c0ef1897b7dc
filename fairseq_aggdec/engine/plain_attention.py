"""BART's attention in a beam search reads one source for all hypotheses of a sentence; this plugin's passes do not."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fairseq.models.bart import BARTModel


@contextmanager
def plain_attention(models: Sequence[Any]) -> Iterator[None]:
    """Within the block, every row of a decoder reads its own source, as in any Transformer.

    A generator of fairseq with a beam calls `BARTModel.set_beam_size`, which also replaces the encoder's
    `reorder_encoder_out`, and the model stays so. Passes with other rows would fail or read other sentences' sources.
    """
    set_to_beams = [m for m in models if isinstance(m, BARTModel) and "reorder_encoder_out" in vars(m.encoder)]
    beams = [model.decoder.layers[0].encoder_attn.beam_size for model in set_to_beams]
    for model in set_to_beams:
        model.set_beam_size(1)
        del model.encoder.reorder_encoder_out
    try:
        yield
    finally:
        for model, beam in zip(set_to_beams, beams, strict=True):
            model.set_beam_size(beam)
