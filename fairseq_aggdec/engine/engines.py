"""The engines of the models at hand: made when first used, made anew when a model has moved."""

from typing import Any

from fairseq.models import FairseqEncoderDecoderModel
from torch import nn

from fairseq_aggdec.engine.arithmetic.bit_exact_probe import BitExactProbe
from fairseq_aggdec.engine.arithmetic.precision import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.block_decoder import BlockDecoder
from fairseq_aggdec.engine.block_encoder import BlockEncoder
from fairseq_aggdec.engine.host_memory import keep_freed_memory
from fairseq_aggdec.engine.proposing_decoder import ProposingDecoder
from fairseq_aggdec.engine.supported_models import unsupported_decoder, unsupported_encoder
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.blockwise_transformer import BlockwiseDecoder


class Engines:
    """They hold fused and prepacked copies of weights: whoever writes to a model's weights calls `clear`."""

    def __init__(self, arithmetic: Arithmetic = AS_THE_MODEL) -> None:
        """
        Args:
            arithmetic: of all engines.
        """
        self.arithmetic = arithmetic
        self._decoders: dict[nn.Module, BlockDecoder | None] = {}
        self._encoders: dict[nn.Module, BlockEncoder | None] = {}

    def decoder(self, decoder: nn.Module) -> BlockDecoder | None:
        """The engine of a model's decoder; None where `unsupported_decoder` says why there is none.

        Raises:
            AggdecError: the arithmetic is not to be had for this decoder, or on its device.
        """
        if decoder not in self._decoders:
            self._decoders[decoder] = self._new_decoder(decoder)
        engine = self._decoders[decoder]
        if engine is not None and not engine.is_current():
            engine = self._decoders[decoder] = self._new_decoder(decoder)
        return engine

    def encode(self, model: FairseqEncoderDecoderModel, net_input: dict[str, Any]) -> dict[str, Any]:
        """What fairseq's generator gets from `model.encoder` for a batch.

        The engine encodes only for decoders that it runs itself, since it leaves out what those do not read.

        Raises:
            AggdecError: the arithmetic is not to be had for this model, or on its device.
        """
        encoder = model.encoder
        if encoder not in self._encoders:
            self._encoders[encoder] = self._new_encoder(model)
        engine = self._encoders[encoder]
        if engine is None:
            return encoder.forward_torchscript(net_input)
        if not engine.is_current():
            engine = self._encoders[encoder] = self._new_encoder(model)
            assert engine is not None
        return engine(net_input["src_tokens"])

    def clear(self) -> None:
        """Forget all engines."""
        self._decoders.clear()
        self._encoders.clear()

    def _new_decoder(self, decoder: nn.Module) -> BlockDecoder | None:
        reason = unsupported_decoder(decoder)
        if reason is None:
            if next(decoder.parameters()).device.type == "cpu":
                keep_freed_memory()
            if isinstance(decoder, BlockwiseDecoder):
                return ProposingDecoder(decoder, self.arithmetic)
            return BlockDecoder(decoder, arithmetic=self.arithmetic)
        self._refuse_all_but_default(reason)
        return None

    def _new_encoder(self, model: FairseqEncoderDecoderModel) -> BlockEncoder | None:
        decoder = self.decoder(model.decoder)
        reason = unsupported_encoder(model.encoder)
        if decoder is None or reason is not None:
            if reason is not None:
                self._refuse_all_but_default(reason)
            return None
        encoder = BlockEncoder(model.encoder, self.arithmetic)
        if self.arithmetic.bit_exact:
            objection = BitExactProbe(encoder, decoder).objection()
            if objection is not None:
                raise AggdecError(
                    f"--bit-exact cannot be kept here, on {encoder.device.type} with {encoder.dtype} weights: "
                    f"{objection}. Leave it out: outputs then differ from greedy decoding's at near-ties only"
                )
        return encoder

    def _refuse_all_but_default(self, reason: str) -> None:
        if self.arithmetic != AS_THE_MODEL:
            raise AggdecError(
                f"{self.arithmetic.options()} needs this plugin's engine, which does not support {reason}"
            )
