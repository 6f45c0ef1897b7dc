"""The engines of the models at hand, verifiers and drafters: made when first used, and anew where weights change."""

import logging
import operator
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import torch
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.models.transformer import TransformerEncoderBase
from torch import Tensor, nn
from torch.nn.modules.module import _global_forward_hooks, _global_forward_pre_hooks
from torch.optim.optimizer import register_optimizer_step_post_hook

from fairseq_aggdec.engine.arithmetic.bit_exact_probe import BitExactProbe
from fairseq_aggdec.engine.arithmetic.precision import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.block_decoder import BlockDecoder
from fairseq_aggdec.engine.block_encoder import BlockEncoder
from fairseq_aggdec.engine.draft_decoder import DraftDecoder
from fairseq_aggdec.engine.host_memory import keep_freed_memory
from fairseq_aggdec.engine.proposing_decoder import ProposingDecoder
from fairseq_aggdec.engine.supported_models import broken_weight, unsupported_decoder, unsupported_encoder
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.blockwise_transformer import BlockwiseDecoder
from fairseq_aggdec.models.nar_drafter import NarDrafterModel
from fairseq_aggdec.models.warm_start import encoder_fingerprint

logger = logging.getLogger(__name__)


_optimizer_steps = 0
_APART = 8
"""weights from one whose address is looked at to the next: a converted model can have one where it was before"""
_Key = TypeVar("_Key")
_Engine = TypeVar("_Engine")


def _count_step(*_: Any) -> None:
    global _optimizer_steps
    _optimizer_steps += 1


register_optimizer_step_post_hook(_count_step)


class _WeightsAsRead:
    """What is remembered of a module's weights when an engine is made of them; it tells when the engine is old."""

    def __init__(self, module: nn.Module) -> None:
        holders = [own._parameters for own in module.modules()]
        found: list[Any] = [(held, *item) for held in holders for item in held.items() if item[1] is not None]
        self._weights = [weight for *_, weight in found]
        found += [(own._modules, name, part) for own in module.modules() for name, part in own._modules.items()]
        own_ones = [held for own in module.modules() for held in _collections(own)]
        self._collections = [*own_ones, _global_forward_hooks, _global_forward_pre_hooks]
        self._places = [(held, name) for held, name, _ in found]
        self._things = [thing for *_, thing in found]
        # of weights that were made in inference mode nothing is counted
        self._is_counted = not any(weight.is_inference() for weight in self._weights)
        self._sizes = list(map(len, self._collections))
        self._seen = self._now()

    def are_current(self) -> bool:
        """Whether the module has the same parts and weights, which have neither moved nor been written to since.

        It is asked before every batch: the addresses of some weights tell whether a model has moved, and every weight's
        count of changes whether it was written to. PyTorch does not count what goes through `weight.data`, by which
        fairseq's optimizers write, so that a step of any optimizer counts, too. Of weights that were made in inference
        mode it counts nothing.
        """
        things = [held.get(name) for held, name in self._places]
        is_whole = all(map(operator.is_, things, self._things)) and list(map(len, self._collections)) == self._sizes
        return is_whole and self._now() == self._seen

    def _now(self) -> list[Any]:
        versions: list[Any] = [weight._version for weight in self._weights] if self._is_counted else []
        first = self._weights[:1]
        versions.append(_optimizer_steps)
        return [(w.dtype, w.device) for w in first] + [w.data_ptr() for w in self._weights[::_APART]] + versions


def _collections(module: nn.Module) -> tuple[Mapping[Any, Any], ...]:
    """What makes the engine old where it gets a further entry, or loses one."""
    return module._modules, module._parameters, module._forward_hooks, module._forward_pre_hooks


class _Made(Generic[_Key, _Engine]):
    """Engines that were made, each as long as its module's weights are those that it was made of."""

    def __init__(self) -> None:
        self._made: dict[_Key, tuple[_WeightsAsRead, _Engine]] = {}

    def current(self, key: _Key, module: nn.Module, make: Callable[[], _Engine]) -> _Engine:
        """The engine of a key, which `make` makes of the module's weights where there is none or they have changed."""
        if key in self._made:
            weights, engine = self._made[key]
            if weights.are_current():
                return engine
        engine = make()
        self._made[key] = _WeightsAsRead(module), engine
        return engine

    def clear(self) -> None:
        """Forget them."""
        self._made.clear()


class Engines:
    """They hold fused and prepacked copies of weights.

    Changes of a model's weights are noticed, but for what is written through `weight.data`, or to weights that were
    made in inference mode: then call `clear`. A pickled or copied one is empty.
    """

    def __init__(self, arithmetic: Arithmetic = AS_THE_MODEL) -> None:
        self.arithmetic = arithmetic
        self.lock = threading.RLock()
        """to be held while a batch is decoded: an engine holds the batch's cache"""
        self.encoders_made = 0
        self._reasons: _Made[nn.Module, str | None] = _Made()
        self._decoders: _Made[nn.Module, BlockDecoder | None] = _Made()
        self._encoders: _Made[nn.Module, BlockEncoder | None] = _Made()

    def unsupported(self, decoder: nn.Module) -> str | None:
        """What `unsupported_decoder` says, which looks at every part again only where the decoder has changed."""
        return self._reasons.current(decoder, decoder, lambda: unsupported_decoder(decoder))

    def decoder(self, decoder: nn.Module) -> BlockDecoder | None:
        """The engine of a model's decoder; None where `unsupported_decoder` says why there is none.

        Raises:
            AggdecError: the arithmetic is not to be had for this decoder, or on its device.
        """
        return self._decoders.current(decoder, decoder, lambda: self._new_decoder(decoder))

    def encode(self, model: FairseqEncoderDecoderModel, net_input: dict[str, Any]) -> dict[str, Any]:
        """What fairseq's generator gets from `model.encoder` for a batch.

        The engine encodes only for decoders that it runs itself, since it leaves out what those do not read.

        Raises:
            AggdecError: the arithmetic is not to be had for this model, or on its device.
        """
        encoder = model.encoder
        engine = self._encoders.current(encoder, encoder, lambda: self._new_encoder(model))
        if engine is None or net_input.get("token_embeddings") is not None:  # which take the place of `src_tokens`
            return encoder.forward_torchscript(net_input)
        return engine(net_input["src_tokens"])

    def clear(self) -> None:
        """Forget all engines."""
        self._reasons.clear()
        self._decoders.clear()
        self._encoders.clear()

    def __reduce__(self) -> tuple[Any, ...]:
        return Engines, (self.arithmetic,)

    def _new_decoder(self, decoder: nn.Module) -> BlockDecoder | None:
        reason = self.unsupported(decoder)
        if reason is None:
            _check_weights(decoder, "decoder")
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
        _check_weights(model.encoder, "encoder")
        self.encoders_made += 1
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


def _check_weights(model: nn.Module, side: str) -> None:
    """fairseq's own search fails where scores are no numbers; here they could pass for bad ones."""
    name = broken_weight(model)
    if name is not None:
        raise AggdecError(
            f"the model's {side}.{name} holds NaN or infinity, so that its scores are no numbers: "
            "its training has gone wrong; use an earlier checkpoint"
        )


class LoadedDrafter:
    """A block drafter on its verifier's device and in its precision; it shares the encoder where theirs are equal."""

    def __init__(self, model: NarDrafterModel, name: str = "the drafter") -> None:
        """`model` is moved and converted in place when it is first used; `name` stands for it in messages."""
        self.model = model
        model.eval()  # not chained: of a model that fairseq has prepared for generation it returns None
        model.requires_grad_(False)
        self.name = name
        self.lock = threading.RLock()
        """as that of `Engines`, for generators that share a drafter but no engines"""
        self._engines: _Made[Arithmetic, DraftDecoder] = _Made()
        self._encoders: _Made[Arithmetic, BlockEncoder | None] = _Made()
        self._verifiers: list[FairseqEncoderDecoderModel] = []
        self._shared: int | None = None

    def block_size(self, wanted: int) -> int:
        """The number of tokens to draft: `wanted`, or where that is 0 as many as the drafter says.

        Raises:
            AggdecError: `wanted` is above the block size that it was trained for.
        """
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
    ) -> DraftDecoder:
        """Start drafting for a new batch.

        Args:
            dtype: the type of the verifier's weights.
            verifiers: the models whose encoders have read the batch; none where the drafter works alone.
            arithmetic: how the drafter's layers compute; for each a copy of its weights is kept.

        Raises:
            AggdecError: the engine does not support the drafter, or not this precision on this machine.
        """
        weight = self.model.decoder.embed_tokens.weight
        device = net_input["src_tokens"].device
        if (weight.device, weight.dtype) != (device, dtype):
            self.model.to(device=device, dtype=dtype)
        try:
            engine = self._engines.current(arithmetic, self.model.decoder, lambda: self._new_decoder(arithmetic))
        except ValueError as error:
            raise AggdecError(f"{self.name} cannot be used for decoding: {error}") from error
        if verifiers and list(verifiers) != self._verifiers:
            self._verifiers = list(verifiers)
            is_frozen = bool(self.model.encoder_fingerprint.any())
            # that of the weights as they are now: the verifier's may have been rounded to bfloat16, too
            self._shared = same_encoder(encoder_fingerprint(self.model.encoder), verifiers) if is_frozen else None
            which = "encodes the source itself" if self._shared is None else "shares the verifier's encoder"
            logger.info(f"{self.name} {which}")
        if verifiers and self._shared is not None:
            engine.start(encoder_outs[self._shared])
        else:
            engine.start_later(lambda wanted: self._encode(net_input, wanted, arithmetic))
        return engine

    def _new_decoder(self, arithmetic: Arithmetic) -> DraftDecoder:
        self.forget_verifiers()  # the encoder's weights may be new, too
        return DraftDecoder(self.model.decoder, arithmetic)

    def _new_encoder(self, arithmetic: Arithmetic) -> BlockEncoder | None:
        encoder = self.model.encoder
        return None if unsupported_encoder(encoder) is not None else BlockEncoder(encoder, arithmetic, clamps=True)

    def _encode(self, net_input: dict[str, Any], rows: Tensor | None, arithmetic: Arithmetic) -> dict[str, Any]:
        """The output of the drafter's own encoder for some rows of a batch; None for all rows."""
        encoder = self.model.encoder
        if rows is not None:
            net_input = {name: value[rows] for name, value in net_input.items() if isinstance(value, Tensor)}
        own = self._encoders.current(arithmetic, encoder, lambda: self._new_encoder(arithmetic))
        return encoder.forward_torchscript(net_input) if own is None else own(net_input["src_tokens"])

    def forget_verifiers(self) -> None:
        """Compare encoders again at the next `start`: the verifiers' weights have changed."""
        self._verifiers = []

    def __reduce__(self) -> tuple[Any, ...]:
        return LoadedDrafter, (self.model, self.name)


def same_encoder(fingerprint: Tensor, verifiers: Sequence[FairseqEncoderDecoderModel]) -> int | None:
    """The index of the verifier whose encoder has this fingerprint; None where there is none."""
    for number, verifier in enumerate(verifiers):
        encoder = verifier.encoder
        if isinstance(encoder, TransformerEncoderBase) and torch.equal(encoder_fingerprint(encoder), fingerprint):
            return number
    return None
