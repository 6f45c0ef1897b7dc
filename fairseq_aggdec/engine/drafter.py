"""A model that drafts for verifiers."""

import logging
from collections.abc import Sequence
from typing import Any

import torch
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.models.transformer import TransformerEncoderBase
from torch import Tensor

from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.choose_backend import choose_backend
from fairseq_aggdec.engine.decoder import Decoder
from fairseq_aggdec.engine.draft_decoder import DraftDecoder
from fairseq_aggdec.engine.encoder import Encoder
from fairseq_aggdec.engine.engines import EngineCache, built
from fairseq_aggdec.engine.recompute import RecomputeVerifier
from fairseq_aggdec.engine.small_model import SmallModel
from fairseq_aggdec.engine.supported_models import (
    unsupported_decoder,
    unsupported_encoder,
)
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.hub_t5 import T5Encoder
from fairseq_aggdec.models.nar_drafter import NarDrafterModel
from fairseq_aggdec.models.warm_start import encoder_fingerprint

logger = logging.getLogger(__name__)

_STEPS = 4
"""the most tokens that an ordinary model drafts without --block-size"""


class LoadedDrafter(EngineCache):
    """A model that drafts, on its verifier's device and in its precision; it shares an equal encoder of the verifier.

    A block drafter, or any encoder-decoder of fairseq that writes from left to right.
    """

    def __init__(self, model: Any, name: str = "the drafter") -> None:
        """`model` is moved and converted in place at first use; `name`: its name in messages."""
        super().__init__()
        self.model = model
        self.name = name
        self.is_autoregressive = not isinstance(model, NarDrafterModel)
        """whether it is an ordinary model, each of whose draft tokens takes a step"""
        # not chained: fairseq's models return None here once they are prepared for generation
        model.eval()
        model.requires_grad_(False)
        self._verifiers: list[FairseqEncoderDecoderModel] = []
        self._shared: int | None = None
        """the index of the one of `_verifiers` whose encoder is equal"""

    def block_size(self, wanted: int) -> int:
        """How many tokens to draft: `wanted`, or the drafter's default where that is 0.

        Raises `AggdecError` where `wanted` is above the block size of a block drafter's training.
        """
        if self.is_autoregressive:
            return wanted or _STEPS
        if wanted > self.model.block_size:
            raise AggdecError(
                f"--block-size {wanted}: {self.name} was trained for blocks of {self.model.block_size}; give no more"
            )
        return wanted or self.model.decoding_block_size

    def start(
        self,
        net_input: dict[str, Any],
        dtype: torch.dtype,
        verifiers: Sequence[FairseqEncoderDecoderModel] = (),
        encoder_outs: Sequence[dict[str, Any]] = (),
        arithmetic: Arithmetic = AS_THE_MODEL,
    ) -> Any:
        """Start drafting for a new batch.

        `dtype`: the type of the verifier's weights; `verifiers`: none where the drafter decodes alone; `encoder_outs`:
        the output of each one's encoder; `arithmetic`: of the drafter's layers; each needs a copy of the weights.

        Returns a `DraftDecoder` or, of an ordinary model, a `SmallModel`.

        Raises `AggdecError` where the engine does not support a block drafter, or the precision is not available.
        """
        # fairseq moves and converts the verifier's models alone
        weight = next(self.model.parameters())
        device = net_input["src_tokens"].device
        if (weight.device, weight.dtype) != (device, dtype):
            self.model.to(device=device, dtype=dtype)
            self.clear()
        try:
            engine = self.current(
                self.model.decoder, arithmetic, lambda: self._new_decoder(arithmetic)
            )
        except (ValueError, AggdecError) as error:
            raise AggdecError(
                f"{self.name} cannot be used for decoding: {error}"
            ) from error

        # the source is encoded by an equal encoder of a verifier, or when the drafter is asked for a draft
        if verifiers and list(verifiers) != self._verifiers:
            self._verifiers = list(verifiers)
            self._shared = self._same_encoder()
            which = (
                "encodes the source itself"
                if self._shared is None
                else "shares the verifier's encoder"
            )
            logger.info(f"{self.name} {which}")
        if verifiers and self._shared is not None:
            engine.start(encoder_outs[self._shared])
        else:
            engine.start_later(lambda rows: self._encode(net_input, rows, arithmetic))
        return engine

    def _same_encoder(self) -> int | None:
        """The index of the verifier whose encoder is the drafter's; None where there is none."""
        encoder = self.model.encoder
        if self.is_autoregressive and not self._has_encoder_engine():
            # fairseq's own code drafts, and reads more than the verifier's engine encodes
            return None
        if not self.is_autoregressive and not self.model.encoder_fingerprint.any():
            return None  # it was trained for no verifier
        # of the present weights: like the verifier's they may have been rounded to bfloat16
        return same_encoder(encoder_fingerprint(encoder), self._verifiers)

    def _has_encoder_engine(self) -> bool:
        return (
            self._why_no_engine is None
            and unsupported_encoder(self.model.encoder) is None
        )

    @property
    def _why_no_engine(self) -> str | None:
        """The reason why fairseq's own code drafts; None where an engine does."""
        return (
            unsupported_decoder(self.model.decoder) if self.is_autoregressive else None
        )

    def _new_decoder(self, arithmetic: Arithmetic) -> DraftDecoder | SmallModel:
        self.forget_verifiers()  # the encoder's weights may have changed, too
        decoder = self.model.decoder
        if not self.is_autoregressive:
            return built(DraftDecoder, decoder, arithmetic)
        if self._why_no_engine is None:
            return SmallModel(built(Decoder, decoder, arithmetic), decoder)
        logger.warning(
            f"{self.name} drafts by fairseq's own code, slower, because of {self._why_no_engine}"
        )
        choice = choose_backend(next(decoder.parameters()), AS_THE_MODEL).choice
        return SmallModel(
            RecomputeVerifier(self.model, decoder.dictionary.pad(), choice), decoder
        )

    def _new_encoder(self, arithmetic: Arithmetic) -> Encoder | None:
        if not self._has_encoder_engine():
            return None
        return built(Encoder, self.model.encoder, arithmetic, clamps=True)

    def _encode(
        self, net_input: dict[str, Any], rows: Tensor | None, arithmetic: Arithmetic
    ) -> dict[str, Any]:
        """The output of the drafter's encoder for these rows of a batch; None: all rows."""
        encoder = self.model.encoder
        source = net_input["src_tokens"]
        engine = self.current(
            encoder, arithmetic, lambda: self._new_encoder(arithmetic)
        )
        if engine is not None:
            return engine(source if rows is None else source[rows])

        # fairseq's own code
        limit = encoder.max_positions()
        # it drafts from the beginning of a longer source
        if source.dim() == 2 and source.size(1) > limit:
            pad = encoder.dictionary.pad()
            source = source.masked_fill(source.ne(pad).cumsum(dim=1) > limit, pad)
            net_input = {**net_input, "src_tokens": source}
        # all rows: fairseq's LSTM needs the longest first
        encoded = encoder.forward_torchscript(net_input)
        return encoded if rows is None else encoder.reorder_encoder_out(encoded, rows)

    def forget_verifiers(self) -> None:
        """Compare encoders again at the next `start`: the verifiers' weights have changed."""
        self._verifiers = []

    def __reduce__(self) -> tuple[Any, ...]:
        return LoadedDrafter, (self.model, self.name)


def same_encoder(
    fingerprint: Tensor, verifiers: Sequence[FairseqEncoderDecoderModel]
) -> int | None:
    """The index of the verifier with this encoder fingerprint; None where there is none."""
    for index, verifier in enumerate(verifiers):
        encoder = verifier.encoder
        if isinstance(encoder, TransformerEncoderBase | T5Encoder) and torch.equal(
            encoder_fingerprint(encoder), fingerprint
        ):
            return index
    return None
