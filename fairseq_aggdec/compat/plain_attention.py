"""BART's attention in a beam search reads one source for all hypotheses of a sentence; this plugin's passes do not."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fairseq.models.bart import BARTModel

from fairseq_aggdec.compat.model_locks import alone_with


@contextmanager
def plain_attention(models: Sequence[Any]) -> Iterator[None]:
    """Within the block, every row of a decoder reads its own source, as in any Transformer. Other threads wait.

    A generator of fairseq with a beam calls `BARTModel.set_beam_size`, which also replaces the encoder's
    `reorder_encoder_out`, and the model stays so. Passes with other rows would fail or read other sentences' sources.
    """
    barts = [model for model in models if isinstance(model, BARTModel)]
    with alone_with(barts):
        beams = {
            model: model.decoder.layers[0].encoder_attn.beam_size
            for model in barts
            if _is_set_to_a_beam(model)
        }
        make_plain(barts)
        try:
            yield
        finally:
            for model, beam in beams.items():
                model.set_beam_size(beam)


def make_plain(models: Sequence[Any]) -> None:
    """Undo what generators with a beam have set, as a new one of fairseq with a beam of one does not."""
    with alone_with(models):
        for model in filter(_is_set_to_a_beam, models):
            model.set_beam_size(1)
            del model.encoder.reorder_encoder_out


def _is_set_to_a_beam(model: Any) -> bool:
    return isinstance(model, BARTModel) and "reorder_encoder_out" in vars(model.encoder)
