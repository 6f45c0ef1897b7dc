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
    beams = {model: model.decoder.layers[0].encoder_attn.beam_size for model in _set_to_beams(models)}
    make_plain(models)
    try:
        yield
    finally:
        for model, beam in beams.items():
            model.set_beam_size(beam)


def make_plain(models: Sequence[Any]) -> None:
    """Undo what generators with a beam have set, as a new one of fairseq with a beam of one does not."""
    for model in _set_to_beams(models):
        model.set_beam_size(1)
        del model.encoder.reorder_encoder_out


def _set_to_beams(models: Sequence[Any]) -> list[BARTModel]:
    return [m for m in models if isinstance(m, BARTModel) and "reorder_encoder_out" in vars(m.encoder)]
