"""The engines of the models at hand: made when first used, made anew when a model has moved."""

from typing import Any

from fairseq.models import FairseqEncoderDecoderModel
from torch import nn

from fairseq_aggdec.engine.block_decoder import BlockDecoder, unsupported_reason
from fairseq_aggdec.engine.block_encoder import BlockEncoder, unsupported_encoder


class Engines:
    """They hold fused and rearranged copies of weights: whoever writes to a model's weights calls `clear`."""

    def __init__(self) -> None:
        self._decoders: dict[nn.Module, BlockDecoder | None] = {}
        self._encoders: dict[nn.Module, BlockEncoder | None] = {}

    def decoder(self, decoder: nn.Module) -> BlockDecoder | None:
        """The engine of a model's decoder; None where `unsupported_reason` says why there is none."""
        if decoder not in self._decoders:
            self._decoders[decoder] = BlockDecoder(decoder) if unsupported_reason(decoder) is None else None
        engine = self._decoders[decoder]
        if engine is not None and not engine.is_current():
            engine = self._decoders[decoder] = BlockDecoder(decoder)
        return engine

    def encode(self, model: FairseqEncoderDecoderModel, net_input: dict[str, Any]) -> dict[str, Any]:
        """What fairseq's generator gets from `model.encoder` for a batch.

        The engine encodes only for decoders that it runs itself, since it leaves out what those do not read.
        """
        encoder = model.encoder
        if encoder not in self._encoders:
            taken = unsupported_reason(model.decoder) is None and unsupported_encoder(encoder) is None
            self._encoders[encoder] = BlockEncoder(encoder) if taken else None
        engine = self._encoders[encoder]
        if engine is None:
            return encoder.forward_torchscript(net_input)
        if not engine.is_current():
            engine = self._encoders[encoder] = BlockEncoder(encoder)
        return engine(net_input["src_tokens"])

    def clear(self) -> None:
        """Forget all engines."""
        self._decoders.clear()
        self._encoders.clear()
