"""The drafter of papers §3.2.1 (Aggressive Decoding): a Transformer whose decoder predicts a block of k tokens at once.

It reads what the verifier reads, the start symbol and y1..yp, followed by k mask positions p+1..p+k; the output at
position p+1+i predicts y of that very position. With `prefix_attention` "causal" the prefix attends to itself from left
to right and each block to its prefix and to itself: prefix states do not depend on what follows, can be cached while
decoding, and serve any number of blocks in training. "bidirectional" is the papers' drafter: all see all.
"""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import TransformerModelBase
from fairseq.models.transformer.transformer_legacy import base_architecture
from torch import Tensor, nn

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.nar_drafter_config import NarDrafterConfig
from fairseq_aggdec.models.nar_drafter_decoder import NarDrafterDecoder, Reading
from fairseq_aggdec.models.warm_start import FINGERPRINT_SIZE
from fairseq_aggdec.training.block_sampling import Blocks

__all__ = ["NarDrafterConfig", "NarDrafterDecoder", "NarDrafterModel"]


@register_model("nar_drafter")
class NarDrafterModel(TransformerModelBase):
    """Encoder and block-drafting decoder."""

    def __init__(self, cfg: NarDrafterConfig, encoder: Any, decoder: NarDrafterDecoder) -> None:
        super().__init__(cfg, encoder, decoder)
        self.block_size = cfg.block_size
        # of the verifier's encoder, where this one is kept equal to it; zeros otherwise
        self.register_buffer("encoder_fingerprint", torch.zeros(FINGERPRINT_SIZE, dtype=torch.int32))
        self.exact_weights: dict[str, Tensor] = {}  # see `keep_exact`
        if cfg.freeze_encoder:
            encoder.requires_grad_(False)

    @classmethod
    def add_args(cls, parser: Any) -> None:
        """Options on the command line; their defaults are the architecture's."""
        gen_parser_from_dataclass(parser, NarDrafterConfig(), delete_default=True, with_prefix="")

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "NarDrafterModel":
        """Build from fairseq's options, flat or nested."""
        return super().build_model(NarDrafterConfig.from_namespace(cfg), task)

    @classmethod
    def build_decoder(cls, cfg: NarDrafterConfig, tgt_dict: Any, embed_tokens: nn.Embedding) -> NarDrafterDecoder:
        return NarDrafterDecoder(cfg, tgt_dict, embed_tokens)

    def train(self, mode: bool = True) -> "NarDrafterModel":
        """Training mode, without dropout in a frozen encoder: decoding shares it as it is."""
        super().train(mode)
        if self.cfg.freeze_encoder:
            self.encoder.eval()
        return self

    def keep_exact(self) -> None:
        """Save the frozen weights as they are now, whatever precision the training turns the model to."""
        names = {name for name, weight in self.named_parameters(remove_duplicate=False) if not weight.requires_grad}
        self.exact_weights = {name: value.cpu().clone() for name, value in self.state_dict().items() if name in names}

    def state_dict(self, *args: Any, prefix: str = "", **options: Any) -> dict[str, Any]:
        """PyTorch's, with the frozen weights of `keep_exact`."""
        state = super().state_dict(*args, prefix=prefix, **options)
        state.update({prefix + name: weight for name, weight in self.exact_weights.items()})
        return state

    def load_state_dict(self, state_dict: dict[str, Any], *args: Any, **options: Any) -> Any:
        """fairseq's; a resumed training goes on saving the frozen weights of its checkpoint."""
        self.exact_weights = {name: state_dict[name].cpu().clone() for name in self.exact_weights if name in state_dict}
        return super().load_state_dict(state_dict, *args, **options)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        blocks: Blocks | None = None,
        reveal: Callable[[Tensor], Tensor] | None = None,
        **_: Any,
    ) -> tuple[Tensor, Tensor]:
        """Scores at the block positions that are trained on.

        One call makes both passes of glancing, which distributed training needs. Source and (causal) prefix are read
        once: the same dropout in both passes makes the two readings equal.

        Args:
            src_tokens: B x S.
            src_lengths: B.
            prev_output_tokens: B x W, start symbol and y1..yT, padded on the right.
            blocks: R blocks for each sentence.
            reveal: takes the first pass's tokens (B x R x k; pad where there is no target) and returns the positions
                (B x R x k) whose target the second pass sees; None: one pass.

        Returns:
            Logits, N x V, and the positions they belong to, B x R x k with N true: valid and not revealed.
        """
        if blocks is None:
            raise AggdecError("the drafter is trained with --task block_drafting --criterion glancing_block_loss")
        reading = self.decoder.read(prev_output_tokens, self.encode(src_tokens, src_lengths))
        revealed = None
        if reveal is not None:
            revealed = reveal(self._first_pass(reading, blocks))
        trained = blocks.valid if revealed is None else blocks.valid & ~revealed
        features = self.decoder.draft(reading, blocks.prefix_lengths, revealed, blocks.targets)
        return self.decoder.output_layer(features[trained]), trained

    def encode(self, src_tokens: Tensor, src_lengths: Tensor) -> dict[str, list[Tensor]]:
        """fairseq's encoder output, without a graph where the encoder is frozen."""
        with torch.no_grad() if self.cfg.freeze_encoder else nullcontext():
            return self.encoder(src_tokens, src_lengths=src_lengths)

    def draft_logits(
        self, src_tokens: Tensor, src_lengths: Tensor, prefix_tokens: Tensor, prefix_lengths: Tensor
    ) -> Tensor:
        """Scores of a draft computed from scratch: what a cached implementation has to equal.

        Args:
            src_tokens: B x S.
            src_lengths: B.
            prefix_tokens: B x P, from the left: the start symbol and at least the prefix.
            prefix_lengths: B, p: tokens of the prefix without the start symbol, at most P-1.

        Returns:
            B x k x V; no symbol is excluded.
        """
        encoder_out = self.encode(src_tokens, src_lengths)
        return self.decoder.output_layer(self.decoder(prefix_tokens, encoder_out, prefix_lengths[:, None])[:, 0])

    def best_tokens(self, logits: Tensor) -> Tensor:
        """See `NarDrafterDecoder.best_tokens`."""
        return self.decoder.best_tokens(logits)

    @torch.no_grad()
    def _first_pass(self, reading: Reading, blocks: Blocks) -> Tensor:
        """Tokens drafted with the dropout that the second pass will draw, B x R x k."""
        device = blocks.targets.device
        devices, kind = ([], "cuda") if device.type == "cpu" else ([device], device.type)
        with torch.random.fork_rng(devices, device_type=kind):
            features = self.decoder.draft(reading, blocks.prefix_lengths)
        predicted = torch.full_like(blocks.targets, self.decoder.padding_idx)
        predicted[blocks.valid] = self.best_tokens(self.decoder.output_layer(features[blocks.valid]))
        return predicted


def _set_defaults(cfg: Any, **defaults: Any) -> None:
    """Fill in what the user left out: flat names on the command line, `encoder` and `decoder` groups in YAML."""
    for name, value in defaults.items():
        group, _, rest = name.partition("_")
        nested = getattr(cfg, group, None) if group in ("encoder", "decoder") and hasattr(cfg, group) else None
        if nested is not None:
            if rest not in nested:
                nested[rest] = value
        elif getattr(cfg, name, None) is None:
            setattr(cfg, name, value)


def _architecture(cfg: Any, dim: int, ffn: int, heads: int, encoder_layers: int, decoder_layers: int) -> None:
    sizes: dict[str, int] = {"embed_dim": dim, "ffn_embed_dim": ffn, "attention_heads": heads}
    for side, layers in (("encoder", encoder_layers), ("decoder", decoder_layers)):
        _set_defaults(cfg, **{f"{side}_{name}": size for name, size in sizes.items()}, **{f"{side}_layers": layers})
    if not hasattr(cfg, "decoder"):
        base_architecture(cfg)


@register_model_architecture("nar_drafter", "nar_drafter")
def nar_drafter(cfg: Any) -> None:
    """Transformer-base, as in the papers."""
    _architecture(cfg, 512, 2048, 8, 6, 6)


@register_model_architecture("nar_drafter", "nar_drafter_base")
def nar_drafter_base(cfg: Any) -> None:
    """Transformer-base by another name."""
    nar_drafter(cfg)


@register_model_architecture("nar_drafter", "nar_drafter_big")
def nar_drafter_big(cfg: Any) -> None:
    """Transformer-big."""
    _architecture(cfg, 1024, 4096, 16, 6, 6)


@register_model_architecture("nar_drafter", "nar_drafter_small")
def nar_drafter_small(cfg: Any) -> None:
    """For small data and CPUs: four encoder layers, two decoder layers."""
    _architecture(cfg, 256, 1024, 4, 4, 2)
