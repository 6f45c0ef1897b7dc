"""What scores a batch: this plugin's engine, an ensemble of engines, or fairseq's own code."""

import logging
from collections.abc import Iterable, Iterator

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoderDecoderModel

from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL
from fairseq_aggdec.engine.choose_backend import choose_backend, weight_of
from fairseq_aggdec.engine.decoder import Decoder
from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.engine.ensemble import EnsembleVerifier
from fairseq_aggdec.engine.plain.backend import PlainBackend
from fairseq_aggdec.engine.recompute import RecomputeVerifier
from fairseq_aggdec.engine.supported_models import (
    has_own_probabilities,
    unsupported_decoder,
)
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.samples import Batch
from fairseq_aggdec.process import shorten_waits

logger = logging.getLogger(__name__)

ModelVerifier = Decoder | RecomputeVerifier


class Verifiers:
    """The models that a generator decodes, one or an ensemble, and their engines.

    Engines are asked for in each batch, since fairseq moves models to their device and precision later.
    """

    def __init__(
        self,
        models: Iterable[FairseqEncoderDecoderModel],
        engines: Engines,
        targets: Dictionary,
    ) -> None:
        """`targets`: the target's dictionary.

        Raises `AggdecError` for models that the engine would compute differently.
        """
        self.models = list(models)
        self.engines = engines
        self._pad = targets.pad()
        self._said_fallback = False
        if len({id(model.decoder) for model in self.models}) < len(self.models):
            raise AggdecError(
                "an ensemble has the same decoder twice: give it once, or a copy of it"
            )
        for model in self.models:
            _check(model, len(targets))

    def start(
        self, batch: Batch, temperature: float
    ) -> ModelVerifier | EnsembleVerifier:
        """The verifier or the ensemble, ready to score a batch."""
        verifiers = self.of_each(batch.device)
        shorten_waits(
            all(
                isinstance(verifier, Decoder) and verifier.backend.has_own_threads
                for verifier in verifiers
            )
        )
        for verifier, encoder_out in zip(verifiers, batch.encoder_outs, strict=True):
            verifier.start(encoder_out, temperature)
        if len(verifiers) == 1:
            return verifiers[0]
        return EnsembleVerifier(verifiers, self.backend(batch.device).choice)

    def of_each(self, device: torch.device) -> list[ModelVerifier]:
        """A verifier for each model; `device`: of the batch."""
        found = list(self.decoders())
        if None in found:
            self.say_fallback(
                "fairseq's own code decodes, slower and as exact", self.unsupported()
            )
        return [
            engine or RecomputeVerifier(model, self._pad, self.backend(device).choice)
            for model, engine in zip(self.models, found, strict=True)
        ]

    def decoders(self) -> Iterator[Decoder | None]:
        """The engine of each model's decoder; None where there is none."""
        return (self.engines.decoder(model.decoder) for model in self.models)

    def unsupported(self) -> str | None:
        """All reasons why the engine does not support some models; None where it supports them."""
        reasons = [self.engines.unsupported(model.decoder) for model in self.models]
        each_once = dict.fromkeys(filter(None, reasons))
        return "; ".join(each_once) or None

    def encode(self, batch: Batch) -> Batch:
        """The batch with the output of each model's encoder."""
        encoded = [self.engines.encode(model, batch.net_input) for model in self.models]
        return batch._replace(encoder_outs=encoded)

    def say_fallback(self, who: str, reason: str | None) -> None:
        """Log once who decodes in place of the engine, and why."""
        if not self._said_fallback:
            self._said_fallback = True
            logger.warning(
                f"{who}, because this plugin's engine does not support {reason}"
            )

    def backend(self, device: torch.device) -> PlainBackend:
        """What answers for the device, and chooses from scores that no single engine computes."""
        return choose_backend(weight_of(self.models[0], device), AS_THE_MODEL)


def _check(model: FairseqEncoderDecoderModel, symbols: int) -> None:
    """Raise `AggdecError` for a model that the engine would compute differently."""
    if unsupported_decoder(model.decoder) is not None:
        return
    known = getattr(model.decoder.output_projection, "out_features", symbols)
    if known != symbols:
        raise AggdecError(
            f"the model has {known} output symbols, and its dictionary {symbols}"
        )
    if has_own_probabilities(model):
        raise AggdecError(
            f"{type(model).__name__} makes probabilities by a get_normalized_probs of its own, which this plugin's "
            "engine does not call: decode with --decoding beam"
        )
