"""The engines of models: built at first use, and rebuilt when weights have changed."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Generic, TypeVar

from fairseq.models import FairseqEncoderDecoderModel
from torch import nn

from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.choose_backend import GRAPHS, KERNELS, ONE_BY_ONE, is_asynchronous, ways
from fairseq_aggdec.engine.cuda.launching import give_up
from fairseq_aggdec.engine.decoder import Decoder
from fairseq_aggdec.engine.encoder import Encoder
from fairseq_aggdec.engine.self_check import decoder_objection, encoder_objection
from fairseq_aggdec.engine.supported_models import check_weights, unsupported_decoder, unsupported_encoder
from fairseq_aggdec.engine.weights_snapshot import WeightsSnapshot
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.process import keep_freed_memory

logger = logging.getLogger(__name__)

_Key = TypeVar("_Key")
_Engine = TypeVar("_Engine")


class EngineCache(Generic[_Key, _Engine]):
    """Engines by key. An entry is rebuilt when its module's weights have changed since it was built."""

    def __init__(self) -> None:
        self._entries: dict[_Key, tuple[WeightsSnapshot, _Engine]] = {}
        self.current_keys: set[_Key] = set()
        """the keys of entries that are known to be current"""

    def current(self, key: _Key, module: nn.Module, make: Callable[[], _Engine]) -> _Engine:
        """The engine of a key; `make` builds it where there is none or it is stale."""
        if not self._has_current(key):
            self._entries.pop(key, None)  # an old engine's memory is freed before a new one needs as much
            engine = make()
            self._entries[key] = WeightsSnapshot(module), engine
        return self._entries[key][1]

    def _has_current(self, key: _Key) -> bool:
        return key in self._entries and (key in self.current_keys or self._entries[key][0].are_current())

    def clear(self) -> None:
        self._entries.clear()
        self.current_keys.clear()

    def check(self) -> None:
        """Find out which cached engines still match their model's weights: `current_keys`; `were_current` ends it."""
        self.current_keys = {key for key, (weights, _) in self._entries.items() if weights.may_be_current()}

    def were_current(self) -> bool:
        """Whether all of `current_keys` were current at `check`; others are forgotten."""
        stale = {key for key in self.current_keys if not self._entries[key][0].were_current()}
        self.current_keys -= stale
        for key in stale:
            del self._entries[key]
        return not stale


@contextmanager
def locked_and_checked(lock: threading.RLock, *caches: EngineCache[Any, Any]) -> Iterator[None]:
    """Hold a lock for a batch. Weights are checked once, at its start; of a GPU `were_current` is asked, too."""
    with lock:
        try:
            for cache in caches:
                cache.check()
            yield
        finally:
            for cache in caches:
                cache.current_keys.clear()


class Engines:
    """Engines of verifiers' encoders and decoders, with fused and packed copies of their weights.

    An engine is rebuilt when weights have changed. Call `clear` after a change of hooks, or of single numbers or
    rows through `weight.data`. A pickled or copied instance is empty.
    """

    def __init__(self, arithmetic: Arithmetic = AS_THE_MODEL) -> None:
        self.arithmetic = arithmetic
        self.lock = threading.RLock()
        """held while a batch is decoded, since an engine has the batch's cache"""
        self.encoders_made = 0
        self._decoders: EngineCache[nn.Module, tuple[Decoder | None, str | None]] = EngineCache()
        self._encoders: EngineCache[nn.Module, Encoder | None] = EngineCache()

    def batch(self) -> AbstractContextManager[None]:
        """For a batch: hold `lock`, and check the models' weights only once. See `were_current`."""
        return locked_and_checked(self.lock, self._decoders, self._encoders)

    def were_current(self) -> bool:
        """Whether the engines of a batch have the present weights, which a GPU can say without a wait only at its end.

        If not, nothing that they have computed is to be used: a second run of the batch has new ones.
        """
        return not [cache for cache in (self._decoders, self._encoders) if not cache.were_current()]  # each is asked

    def unsupported(self, decoder: nn.Module) -> str | None:
        """The reason why a decoder has no engine; None where it has one. See `decoder`."""
        return self._decoder_or_reason(decoder)[1]

    def decoder(self, decoder: nn.Module) -> Decoder | None:
        """The engine of a decoder; None where fairseq's own code decodes, see `unsupported`.

        Raises `AggdecError` where the arithmetic is not available for this decoder, or on its device.
        """
        return self._decoder_or_reason(decoder)[0]

    def encode(self, model: FairseqEncoderDecoderModel, net_input: dict[str, Any]) -> dict[str, Any]:
        """Encode a batch, as fairseq's generator does by `model.encoder`.

        The engine encodes only for decoders with an engine, since it computes only the entries that those read.

        Raises `AggdecError` where the arithmetic is not available for this model, or on its device.
        """
        encoder = model.encoder
        engine = self._encoders.current(encoder, encoder, lambda: self._new_encoder(model))
        if engine is None or net_input.get("token_embeddings") is not None:  # they replace `src_tokens`
            return encoder.forward_torchscript(net_input)
        return engine(net_input["src_tokens"])

    def clear(self) -> None:
        """Forget all engines."""
        self._decoders.clear()
        self._encoders.clear()

    def __reduce__(self) -> tuple[Any, ...]:
        return Engines, (self.arithmetic,)

    def _decoder_or_reason(self, decoder: nn.Module) -> tuple[Decoder | None, str | None]:
        def make() -> tuple[Any, str | None]:
            return self._new(Decoder, decoder, unsupported_decoder(decoder), decoder_objection)

        return self._decoders.current(decoder, decoder, make)

    def _new_encoder(self, model: FairseqEncoderDecoderModel) -> Encoder | None:
        reads_speech = not hasattr(model.encoder, "embed_tokens")  # in whose batches sentences change each other
        if self.decoder(model.decoder) is None or (reads_speech and not self.arithmetic.bit_exact):
            return None
        engine, reason = self._new(Encoder, model.encoder, unsupported_encoder(model.encoder), encoder_objection)
        if engine is None:
            logger.warning(f"fairseq's own code encodes, slower and as exact, because of {reason}")
        else:
            self.encoders_made += 1
        return engine

    def _new(
        self,
        kind: Callable[..., Any],
        module: nn.Module,
        reason: str | None,
        objection: Callable[[Any, nn.Module], str | None],
    ) -> tuple[Any, str | None]:
        """Build the fastest engine that computes the same as fairseq's module, else return None and the reason.

        `kind`: `Decoder` or `Encoder`; `reason`: why there is none, if that is known. For another precision, an engine
        in the model's precision is compared.
        """
        if reason is None:
            check_weights(module, "encoder" if kind is Encoder else "decoder")
            weight = next(module.parameters())
            if not is_asynchronous(weight.device):
                keep_freed_memory()
            differs = None
            for way in ways(weight, self.arithmetic):
                if reason is not None:
                    logger.warning(f"{way.name} compute, slower and as exact, because of {reason}")
                try:
                    engine = kind(module, self.arithmetic, way)
                    is_own = self.arithmetic == AS_THE_MODEL or way is KERNELS
                    reason = objection(engine if is_own else kind(module, AS_THE_MODEL, way), module)
                    if way is KERNELS:
                        differs = reason
                except AggdecError:
                    raise
                except Exception as error:  # a model with unknown parts may raise anything
                    reason = f"{type(module).__name__}, which it cannot run ({type(error).__name__}: {error})"
                if reason is None:
                    if differs is not None and way is GRAPHS:  # else it is the model that is unlike fairseq's
                        give_up(differs)
                    if way is not ONE_BY_ONE:
                        logger.info(f"{way.name} compute the {type(module).__name__}")
                    return engine, None
        if self.arithmetic != AS_THE_MODEL:
            raise AggdecError(
                f"{self.arithmetic.options()} needs this plugin's engine, which does not support {reason}"
            )
        return None, reason


def built(kind: Callable[..., Any], module: Any, arithmetic: Arithmetic, **options: Any) -> Any:
    """The fastest engine of a kind that supports a part of a drafter. Drafts need not be trusted.

    Raises `ValueError` where no engine does.
    """
    *faster, last = ways(module.embed_tokens.weight, arithmetic)
    for way in faster:
        with suppress(ValueError):
            return kind(module, arithmetic, way, **options)
    return kind(module, arithmetic, last, **options)
