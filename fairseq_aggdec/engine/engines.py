"""The engines of models: built at first use, and rebuilt when weights have changed."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from fairseq.models import FairseqEncoderDecoderModel
from torch import nn

from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.choose_backend import (
    GRAPHS,
    KERNELS,
    ONE_BY_ONE,
    runs_async,
    ways,
)
from fairseq_aggdec.engine.cuda.launching import give_up
from fairseq_aggdec.engine.decoder import Decoder
from fairseq_aggdec.engine.encoder import Encoder
from fairseq_aggdec.engine.self_check import decoder_objection, encoder_objection
from fairseq_aggdec.engine.supported_models import (
    check_weights,
    unsupported_decoder,
    unsupported_encoder,
)
from fairseq_aggdec.engine.weights_snapshot import WeightsSnapshot
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.process import keep_freed_memory, shorten_waits

logger = logging.getLogger(__name__)

_Engine = TypeVar("_Engine")


class EngineCache:
    """Engines by the module and the arithmetic that they compute; built at first use, and rebuilt when they are stale.

    An engine is stale when its module's weights have changed since it was built.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """held while a batch is decoded, since an engine has the batch's cache"""
        self._entries: dict[
            tuple[nn.Module, Arithmetic], tuple[WeightsSnapshot, Any]
        ] = {}
        self._checked: set[tuple[nn.Module, Arithmetic]] = set()
        """the entries that were current when the batch began"""

    @contextmanager
    def batch(self) -> Iterator[None]:
        """For a batch: hold `lock`, and check weights only once, at its start. See `finish_check`."""
        with self.lock:
            try:
                # no variable here may hold an engine while the batch is decoded: it would outlive its entry
                self._checked = {
                    key
                    for key, (weights, _) in self._entries.items()
                    if weights.begin_check()
                }
                yield
            finally:
                self._checked.clear()

    def finish_check(self) -> bool:
        """Whether the engines of a batch have the present weights, which a GPU can say without a wait only at its end.

        If not, nothing that they have computed is to be used: a second run of the batch has new ones.
        """
        stale = [
            key for key in self._checked if not self._entries[key][0].finish_check()
        ]
        for key in stale:
            self._checked.remove(key)
            del self._entries[key]
        return not stale

    def current(
        self, module: nn.Module, arithmetic: Arithmetic, make: Callable[[], _Engine]
    ) -> _Engine:
        """The engine of a module; `make` builds it where there is none or it is stale."""
        key = module, arithmetic
        if key in self._entries and key not in self._checked:
            weights = self._entries[key][0]
            if not (weights.begin_check() and weights.finish_check()):
                # an old engine's memory is freed before a new one needs as much
                del self._entries[key]
        if key not in self._entries:
            engine = make()
            self._entries[key] = WeightsSnapshot(module), engine
        return self._entries[key][1]

    def clear(self) -> None:
        """Forget all engines."""
        self._entries.clear()
        self._checked.clear()


class Engines(EngineCache):
    """Engines of verifiers' encoders and decoders, with fused and packed copies of their weights.

    Call `clear` after a change of hooks, or of single values or rows through `weight.data`. A pickled or copied
    instance is empty.
    """

    def __init__(self, arithmetic: Arithmetic = AS_THE_MODEL) -> None:
        super().__init__()
        self.arithmetic = arithmetic
        self.encoders_made = 0

    def unsupported(self, decoder: nn.Module) -> str | None:
        """The reason why a decoder has no engine; None where it has one. See `decoder`."""
        return self._decoder_or_reason(decoder)[1]

    def decoder(self, decoder: nn.Module) -> Decoder | None:
        """The engine of a decoder; None where fairseq's own code decodes, see `unsupported`.

        Raises `AggdecError` where the arithmetic is not available for this decoder, or on its device.
        """
        return self._decoder_or_reason(decoder)[0]

    def encode(
        self, model: FairseqEncoderDecoderModel, net_input: dict[str, Any]
    ) -> dict[str, Any]:
        """Encode a batch, as fairseq's generator does by `model.encoder`.

        The engine encodes only for decoders with an engine, since it computes only the entries that those read.

        Raises `AggdecError` where the arithmetic is not available for this model, or on its device.
        """
        encoder = model.encoder
        engine = None
        # embeddings replace `src_tokens`
        if self.decoder(model.decoder) and net_input.get("token_embeddings") is None:
            engine = self.current(
                encoder, self.arithmetic, lambda: self._new_encoder(encoder)
            )
        if engine is None:
            return encoder.forward_torchscript(net_input)
        return engine(net_input["src_tokens"])

    def __reduce__(self) -> tuple[Any, ...]:
        return Engines, (self.arithmetic,)

    def _decoder_or_reason(
        self, decoder: nn.Module
    ) -> tuple[Decoder | None, str | None]:
        def make() -> tuple[Any, str | None]:
            return self._new(
                Decoder, decoder, unsupported_decoder(decoder), decoder_objection
            )

        return self.current(decoder, self.arithmetic, make)

    def _new_encoder(self, encoder: nn.Module) -> Encoder | None:
        # in whose batches sentences change each other
        reads_speech = not hasattr(encoder, "embed_tokens")
        if reads_speech and not self.arithmetic.bit_exact:
            return None
        engine, reason = self._new(
            Encoder, encoder, unsupported_encoder(encoder), encoder_objection
        )
        if engine is None:
            logger.warning(
                f"fairseq's own code encodes, slower and as exact, because of {reason}"
            )
        else:
            self.encoders_made += 1
        return engine

    def _new(
        self,
        kind: type[Any],
        module: nn.Module,
        reason: str | None,
        objection: Callable[[Any, nn.Module], str | None],
    ) -> tuple[Any, str | None]:
        """Build the fastest engine that computes the same as fairseq's module, else return None and the reason.

        `kind`: `Decoder` or `Encoder`; `reason`: why there is none, if that is known.
        """
        if reason is None:
            check_weights(module, kind.__name__.lower())
            weight = next(module.parameters())
            if not runs_async(weight.device):
                keep_freed_memory()
                # packing and the self-check are many small operations of PyTorch, a second where others use the cores
                shorten_waits(True)
            kernels_differ = None
            for way in ways(weight, self.arithmetic):
                if reason is not None:
                    logger.warning(
                        f"{way.name} compute, slower and as exact, because of {reason}"
                    )

                # build it and compare it, or one in the model's precision if it has another
                try:
                    engine = kind(module, self.arithmetic, way)
                    compared = engine
                    if self.arithmetic != AS_THE_MODEL and way is not KERNELS:
                        compared = kind(module, AS_THE_MODEL, way)
                    reason = objection(compared, module)
                    if way is KERNELS:
                        kernels_differ = reason
                except AggdecError:
                    raise
                except Exception as error:
                    # a model with unknown parts may raise anything
                    reason = f"{type(module).__name__}, which it cannot run ({type(error).__name__}: {error})"

                # take it
                if reason is None:
                    # else it is the model that is unlike fairseq's
                    if kernels_differ is not None and way is GRAPHS:
                        give_up(kernels_differ)
                    if way is not ONE_BY_ONE:
                        logger.info(f"{way.name} compute the {type(module).__name__}")
                    return engine, None
        if self.arithmetic != AS_THE_MODEL:
            raise AggdecError(
                f"{self.arithmetic.options()} needs this plugin's engine, which does not support {reason}"
            )
        return None, reason


def built(
    kind: Callable[..., Any], module: Any, arithmetic: Arithmetic, **options: Any
) -> Any:
    """The fastest engine of a kind that supports a part of a drafter. Drafts need not be trusted.

    Raises `ValueError` where no engine does.
    """
    *faster, last = ways(module.embed_tokens.weight, arithmetic)
    for way in faster:
        with suppress(ValueError):
            return kind(module, arithmetic, way, **options)
    return kind(module, arithmetic, last, **options)
