"""The engines of verifiers and drafters: built at first use, and rebuilt when weights have changed."""

import logging
import operator
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import chain
from typing import Any, Generic, TypeVar

import torch
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.models.transformer import TransformerEncoderBase
from torch import Tensor, nn

from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.choose_backend import GRAPHS, KERNELS, ONE_BY_ONE, choose_backend, is_asynchronous, ways
from fairseq_aggdec.engine.cuda.launching import give_up
from fairseq_aggdec.engine.decoder import Decoder
from fairseq_aggdec.engine.draft_decoder import DraftDecoder
from fairseq_aggdec.engine.encoder import Encoder
from fairseq_aggdec.engine.host_memory import keep_freed_memory
from fairseq_aggdec.engine.recompute import RecomputeVerifier
from fairseq_aggdec.engine.self_check import decoder_objection, encoder_objection
from fairseq_aggdec.engine.small_model import SmallModel
from fairseq_aggdec.engine.supported_models import check_weights, unsupported_decoder, unsupported_encoder
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.nar_drafter import NarDrafterModel
from fairseq_aggdec.models.warm_start import encoder_fingerprint

logger = logging.getLogger(__name__)

_STEPS = 4
"""the most tokens that an ordinary model drafts without --block-size"""
_Key = TypeVar("_Key")
_Engine = TypeVar("_Engine")


class _WeightsSnapshot:
    """A snapshot of a module's parts and weights, which tells when an engine built from them is stale."""

    def __init__(self, module: nn.Module) -> None:
        self._holders: list[dict[str, Any]] = [
            held for part in module.modules() for held in (part._modules, part._parameters)
        ]
        self._things = self._all_things()
        self._weights = [thing for thing in self._things if isinstance(thing, Tensor)]
        # PyTorch counts no versions of weights created in inference mode
        self._is_counted = not any(weight.is_inference() for weight in self._weights)
        # a norm or a bias of the last layer: an optimizer changes it in every step
        self._sample = next((weight for weight in reversed(self._weights) if weight.dim() == 1), torch.empty(0))
        self._numbers = self._sample.detach().cpu().clone()
        self._seen = self._now()

    def are_current(self) -> bool:
        """Whether the module has the same parts and weights, neither moved nor written to since.

        PyTorch does not count writes by fused optimizers or through `weight.data`, as fairseq's optimizers write. So
        the elements of one small weight are compared, too.
        """
        things = self._all_things()
        is_whole = len(things) == len(self._things) and all(map(operator.is_, things, self._things))
        return is_whole and self._now() == self._seen and torch.equal(self._sample.cpu(), self._numbers)

    def _all_things(self) -> list[Any]:
        return list(chain.from_iterable(map(dict.values, self._holders)))

    def _now(self) -> list[Any]:
        # a weight that is moved or converted has another address, too
        kind = [(weight.dtype, weight.device) for weight in self._weights[:1]]
        versions = map(operator.attrgetter("_version"), self._weights) if self._is_counted else ()
        return [*kind, *map(Tensor.data_ptr, self._weights), *versions]


class _EngineCache(Generic[_Key, _Engine]):
    """Engines by key. An entry is rebuilt when its module's weights have changed since it was built."""

    def __init__(self) -> None:
        self._entries: dict[_Key, tuple[_WeightsSnapshot, _Engine]] = {}
        self.current_keys: set[_Key] = set()
        """the keys of entries that are known to be current"""

    def current(self, key: _Key, module: nn.Module, make: Callable[[], _Engine]) -> _Engine:
        """The engine of a key; `make` builds it where there is none or it is stale."""
        if key in self._entries:
            weights, engine = self._entries[key]
            if key in self.current_keys or weights.are_current():
                return engine
        engine = make()
        self._entries[key] = _WeightsSnapshot(module), engine
        return engine

    def clear(self) -> None:
        self._entries.clear()
        self.current_keys.clear()

    def check(self) -> None:
        """Find out which cached engines still match their model's weights: `current_keys`."""
        self.current_keys = {key for key, (weights, _) in self._entries.items() if weights.are_current()}


@contextmanager
def _batch(lock: threading.RLock, *caches: _EngineCache[Any, Any]) -> Iterator[None]:
    """Hold a lock for a batch. Weights are checked once, at its start: each check synchronises the GPU."""
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

    An engine is rebuilt when weights have changed. Call `clear` after a change through `weight.data`, of weights from
    inference mode, or of hooks. A pickled or copied instance is empty.
    """

    def __init__(self, arithmetic: Arithmetic = AS_THE_MODEL) -> None:
        self.arithmetic = arithmetic
        self.lock = threading.RLock()
        """held while a batch is decoded, since an engine has the batch's cache"""
        self.encoders_made = 0
        self._decoders: _EngineCache[nn.Module, tuple[Decoder | None, str | None]] = _EngineCache()
        self._encoders: _EngineCache[nn.Module, Encoder | None] = _EngineCache()

    def batch(self) -> AbstractContextManager[None]:
        """For a batch: hold `lock`, and check the models' weights only once."""
        return _batch(self.lock, self._decoders, self._encoders)

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
            fault = None
            for way in ways(weight, self.arithmetic):
                if reason is not None:
                    logger.warning(f"{way.name} compute, slower and as exact, because of {reason}")
                try:
                    engine = kind(module, self.arithmetic, way)
                    is_own = self.arithmetic == AS_THE_MODEL or way is KERNELS
                    reason = objection(engine if is_own else kind(module, AS_THE_MODEL, way), module)
                except AggdecError:
                    raise
                except Exception as error:  # a model with unknown parts may raise anything
                    reason = f"{type(module).__name__}, which it cannot run ({type(error).__name__}: {error})"
                    if isinstance(error, ValueError):  # kernels refuse it by name
                        continue
                if reason is None:
                    if fault is not None and way is GRAPHS:  # else it is the model that is unlike fairseq's
                        give_up(fault)
                    if way is not ONE_BY_ONE:
                        logger.info(f"{way.name} compute the {type(module).__name__}")
                    return engine, None
                if way is KERNELS:
                    fault = reason
        if self.arithmetic != AS_THE_MODEL:
            raise AggdecError(
                f"{self.arithmetic.options()} needs this plugin's engine, which does not support {reason}"
            )
        return None, reason


def _made(kind: Callable[..., Any], module: Any, arithmetic: Arithmetic, **options: Any) -> Any:
    """The fastest engine of a kind that supports a part of a drafter. Drafts need not be trusted.

    Raises `ValueError` where no engine does.
    """
    *faster, last = ways(module.embed_tokens.weight, arithmetic)
    for way in faster:
        with suppress(ValueError):
            return kind(module, arithmetic, way, **options)
    return kind(module, arithmetic, last, **options)


class LoadedDrafter:
    """A model that drafts, on its verifier's device and in its precision; it shares an equal encoder of the verifier.

    A block drafter, or any encoder-decoder of fairseq that writes from left to right.
    """

    def __init__(self, model: Any, name: str = "the drafter") -> None:
        """`model` is moved and converted in place at first use; `name`: its name in messages."""
        self.model = model
        self.is_stepwise = not isinstance(model, NarDrafterModel)
        """whether it is an ordinary model, each of whose draft tokens takes a step"""
        model.eval()  # not chained: fairseq's models return None here once they are prepared for generation
        model.requires_grad_(False)
        self.name = name
        self.lock = threading.RLock()
        """as `Engines.lock`, for generators that share a drafter but no engines"""
        self._engines: _EngineCache[Arithmetic, DraftDecoder | SmallModel] = _EngineCache()
        self._encoders: _EngineCache[Arithmetic, Encoder | None] = _EngineCache()
        self._verifiers: list[FairseqEncoderDecoderModel] = []
        self._shared: int | None = None

    def batch(self) -> AbstractContextManager[None]:
        """As `Engines.batch`."""
        return _batch(self.lock, self._engines, self._encoders)

    def block_size(self, wanted: int) -> int:
        """The number of tokens to draft: `wanted`, or the drafter's default where that is 0.

        Raises `AggdecError` where `wanted` is above the block size of a block drafter's training.
        """
        if self.is_stepwise:
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
        weight = next(self.model.parameters())
        device = net_input["src_tokens"].device
        if (weight.device, weight.dtype) != (device, dtype):
            self.model.to(device=device, dtype=dtype)
            self._engines.clear()
            self._encoders.clear()
        try:
            engine = self._engines.current(arithmetic, self.model.decoder, lambda: self._new_decoder(arithmetic))
        except (ValueError, AggdecError) as error:
            raise AggdecError(f"{self.name} cannot be used for decoding: {error}") from error
        if verifiers and list(verifiers) != self._verifiers:
            self._verifiers = list(verifiers)
            # of the present weights: like the verifier's they may have been rounded to bfloat16
            own = encoder_fingerprint(self.model.encoder) if self._may_share() else None
            self._shared = None if own is None else same_encoder(own, verifiers)
            which = "encodes the source itself" if self._shared is None else "shares the verifier's encoder"
            logger.info(f"{self.name} {which}")
        if verifiers and self._shared is not None:
            engine.start(encoder_outs[self._shared])
        else:
            engine.start_later(lambda wanted: self._encode(net_input, wanted, arithmetic))
        return engine

    def _may_share(self) -> bool:
        """Whether an equal encoder of the verifier would do for the drafter."""
        if self.is_stepwise:  # as `_new_encoder`; an engine encodes only what engines read
            return self._why_no_engine is None and unsupported_encoder(self.model.encoder) is None
        return bool(self.model.encoder_fingerprint.any())

    @property
    def _why_no_engine(self) -> str | None:
        """The reason why fairseq's own code drafts; None where an engine does."""
        return unsupported_decoder(self.model.decoder) if self.is_stepwise else None

    def _new_decoder(self, arithmetic: Arithmetic) -> DraftDecoder | SmallModel:
        self.forget_verifiers()  # the encoder's weights may have changed, too
        decoder = self.model.decoder
        if not self.is_stepwise:
            return _made(DraftDecoder, decoder, arithmetic)
        choice = choose_backend(next(decoder.parameters()), AS_THE_MODEL).choice
        if self._why_no_engine is None:
            return SmallModel(_made(Decoder, decoder, arithmetic), decoder, choice)
        logger.warning(f"{self.name} drafts by fairseq's own code, slower, because of {self._why_no_engine}")
        return SmallModel(RecomputeVerifier(self.model, decoder.dictionary.pad(), choice), decoder, choice)

    def _new_encoder(self, arithmetic: Arithmetic) -> Encoder | None:
        encoder = self.model.encoder
        if self._why_no_engine is not None or unsupported_encoder(encoder) is not None:
            return None
        return _made(Encoder, encoder, arithmetic, clamps=True)

    def _encode(self, net_input: dict[str, Any], rows: Tensor | None, arithmetic: Arithmetic) -> dict[str, Any]:
        """The output of the drafter's own encoder for these rows of a batch; None: all rows."""
        encoder, source = self.model.encoder, net_input["src_tokens"]
        own = self._encoders.current(arithmetic, encoder, lambda: self._new_encoder(arithmetic))
        if own is not None:
            return own(source if rows is None else source[rows])
        limit = encoder.max_positions()
        if source.dim() == 2 and source.size(1) > limit:  # it drafts from the beginning of a longer source
            pad = encoder.dictionary.pad()
            source = source.masked_fill(source.ne(pad).cumsum(dim=1) > limit, pad)
            net_input = {**net_input, "src_tokens": source}
        encoded = encoder.forward_torchscript(net_input)  # all rows: fairseq's LSTM needs the longest first
        return encoded if rows is None else encoder.reorder_encoder_out(encoded, rows)

    def forget_verifiers(self) -> None:
        """Compare encoders again at the next `start`: the verifiers' weights have changed."""
        self._verifiers = []

    def __reduce__(self) -> tuple[Any, ...]:
        return LoadedDrafter, (self.model, self.name)


def same_encoder(fingerprint: Tensor, verifiers: Sequence[FairseqEncoderDecoderModel]) -> int | None:
    """The index of the verifier with this encoder fingerprint; None where there is none."""
    for number, verifier in enumerate(verifiers):
        encoder = verifier.encoder
        if isinstance(encoder, TransformerEncoderBase) and torch.equal(encoder_fingerprint(encoder), fingerprint):
            return number
    return None
