"""The slow verifier for decoders that the block engine cannot run: every block recomputes the whole output."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from fairseq.models import (
    FairseqEncoderDecoderModel,
    FairseqIncrementalDecoder,
)
from fairseq.models.nat import FairseqNATDecoder
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn

from fairseq_aggdec.compat.model_locks import alone_with, with_setting
from fairseq_aggdec.decoding.roles import Verifier
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block, Chosen, RowSelection
from fairseq_aggdec.engine.plain.choice import Choice, choose_block
from fairseq_aggdec.errors import AggdecError


class RecomputeVerifier(Verifier):
    """A `roles.Verifier` over any fairseq encoder-decoder whose decoder can be teacher-forced left to right."""

    def __init__(
        self, model: FairseqEncoderDecoderModel, pad: int, choice: Choice
    ) -> None:
        """`pad` is the target's padding symbol; `choice` finds the highest scores.

        Raises `AggdecError` where the decoder's scores of a token depend on the other tokens of the same pass.
        """
        if isinstance(model.decoder, FairseqNATDecoder):
            raise AggdecError(
                f"{type(model.decoder).__name__} does not write from left to right: decode with fairseq's task "
                "translation_lev"
            )
        for name, module in model.decoder.named_modules():
            source = type(module).__module__
            if source.startswith("torch.ao.nn.") and "quantized" in source:
                raise AggdecError(
                    f"the decoder's {name} is quantised by PyTorch, whose rounding depends on all tokens of a pass, so "
                    "that drafts would change the output: decode with --decoding beam, or the original model with "
                    "--int8"
                )
        self._model = model
        self._pad = pad
        self._choice = choice
        self._temperature = 1.0
        embeddings = getattr(model.decoder, "embed_positions", None)
        self._last = getattr(embeddings, "max_positions", sys.maxsize) - 1
        # for an input shorter than its kernel fairseq's dynamic convolution drops weights before the softmax, which it
        # does not do token by token: inputs are padded to the kernel's size
        kernels = [
            getattr(module, "kernel_size", 1) for module in model.decoder.modules()
        ]
        self._shortest = max(kernel for kernel in kernels if isinstance(kernel, int))
        self._encoder_out: dict[str, Any] = {}
        self._read = _nothing()  # B x L, the decoder's inputs so far

    def start(self, encoder_out: dict[str, Any], temperature: float = 1.0) -> None:
        """Start a new batch.

        Args:
            encoder_out: the output of the model's encoder.
            temperature: divides the decoder's output (of an adaptive softmax: before it computes logits).
        """
        self._encoder_out = encoder_out
        self._temperature = temperature
        self._read = _nothing()

    def verify(
        self,
        block: Block,
        rules: SearchRules,
        ranks: int = 0,
        sequence: Tensor | None = None,
    ) -> Chosen:
        return choose_block(
            self.score(block), self._choice, block, rules, ranks, sequence
        )

    def score(self, block: Block) -> Iterator[Tensor]:
        """Read a block, and return the log-probabilities after its tokens in one chunk, N x V.

        Raises:
            AggdecError: the model returns log-probabilities in half precision, as an adaptive softmax in half precision
                does.
        """
        # the whole output: what was read before the block, the block, and padding
        tokens = block.tokens
        batch_size, width = tokens.shape
        length = max(block.last_start + width, self._shortest)
        read = tokens.new_full((batch_size, length), self._pad)
        known = self._read[:, :length]
        read[:, : known.size(1)] = known
        # B x W
        positions = block.starts[:, None] + torch.arange(width, device=tokens.device)
        read.scatter_(1, positions, tokens)
        is_after = torch.arange(length, device=tokens.device) > positions[:, -1:]
        read.masked_fill_(is_after, self._pad)
        self._read = read

        # as fairseq's search calls it, past hooks of the whole decoder
        # padding of the block may lie after the model's last position
        read = read[:, : self._last + 1]
        with _projections_called(self._model.decoder):
            logits, extra, *_ = self._model.decoder.forward(
                read, encoder_out=self._encoder_out
            )
        output = (logits / self._temperature, extra)
        log_probs = self._model.get_normalized_probs(
            output, log_probs=True, sample=None
        )
        if log_probs.dtype in (torch.float16, torch.bfloat16):
            raise AggdecError(
                "fairseq adds up log-probabilities in half precision where an adaptive softmax returns them so, and "
                "rounding of the sum decides between tokens: decode in single precision, or with --decoding beam"
            )

        # the entries after the block's tokens
        positions = positions.clamp(max=self._last)
        index = positions[..., None].expand(-1, -1, log_probs.size(-1))
        yield block.ragged.pack(log_probs.gather(1, index))

    def keep(self, order: RowSelection) -> None:
        self._read = self._read[order.tensor]
        self._encoder_out = self._model.encoder.reorder_encoder_out(
            self._encoder_out, order.tensor
        )


def _nothing() -> Tensor:
    return torch.empty(1, 0, dtype=torch.long)


@contextmanager
def _projections_called(decoder: nn.Module) -> Iterator[None]:
    """Within the block, attention calls its projections and applies its `scaling`, as it does token by token.

    Of a whole text it would read their weights alone, without adapters and hooks, unless heads have been pruned. A
    decoder that cannot read token by token always reads so in fairseq's search, and here.
    """
    reads_tokens = isinstance(decoder, FairseqIncrementalDecoder)
    attentions = [
        part
        for part in decoder.modules()
        if reads_tokens and isinstance(part, MultiheadAttention)
    ]
    with (
        alone_with([decoder]),
        with_setting(attentions, "skip_embed_dim_check", True),
    ):
        yield
