"""BART's attention in a beam search reads one source for all hypotheses of a sentence; this plugin's passes do not."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fairseq.modules import MultiheadAttention


@contextmanager
def plain_attention(models: Sequence[Any]) -> Iterator[None]:
    """Within the block, every row of a decoder reads its own source, as in any Transformer.

    A generator of fairseq with a beam calls `BARTModel.set_beam_size`, which sets the decoder's attention to that beam
    and replaces `encoder.reorder_encoder_out`, and the model stays so. Later greedy passes of fairseq's code would fail
    or read the sources of other sentences, and those of an engine would not agree with them.
    """
    set_to_beams = [
        model
        for model in models
        if getattr(vars(model.encoder).get("reorder_encoder_out"), "__name__", "") == "_reorder_encoder_out"
    ]
    attentions = [part for m in set_to_beams for part in m.decoder.modules() if isinstance(part, MultiheadAttention)]
    beams = [part.beam_size for part in attentions]
    methods = [vars(model.encoder).pop("reorder_encoder_out") for model in set_to_beams]
    for part in attentions:
        part.beam_size = 1
    try:
        yield
    finally:
        for part, beam in zip(attentions, beams, strict=True):
            part.beam_size = beam
        for model, method in zip(set_to_beams, methods, strict=True):
            model.encoder.reorder_encoder_out = method
