"""The forward pass of a stock fairseq Transformer decoder for a block of tokens.

fairseq's own decoder with an incremental state reads one token and drops the causal mask. This one reads any number of
tokens at any position of each row, with the same weights.
"""

from collections.abc import Iterator
from typing import Any

import torch
from fairseq.models.transformer import TransformerDecoderBase
from torch import Tensor

from fairseq_aggdec.decoding.beam.roles import Entries, TreeBlock, TreeVerifier
from fairseq_aggdec.decoding.roles import Verifier
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block, Chosen, Order, Ragged
from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.choose_backend import ONE_BY_ONE, Way, choose_backend
from fairseq_aggdec.engine.graphs import blocks, trees
from fairseq_aggdec.engine.graphs.captured import Captured
from fairseq_aggdec.engine.graphs.memory import StaticMemory
from fairseq_aggdec.engine.memory import Memory
from fairseq_aggdec.engine.parts import Parts
from fairseq_aggdec.engine.plain.choice import choose_block, entries_behind
from fairseq_aggdec.engine.proposals import Proposals
from fairseq_aggdec.engine.supported_models import DECODERS, unsupported_decoder
from fairseq_aggdec.models.blockwise_transformer import BlockwiseDecoder

_LOGITS_CHUNK = 128
"""number of tokens whose logits are computed at once; the memory of all logits would be fetched from the system and
returned for each block, which takes longer than the arithmetic"""
_MAX_PADDING_READ = 4
"""number of padding tokens that are read along, since to leave them out would take longer"""


class Decoder(Verifier, TreeVerifier):
    """A `roles.Verifier` and a `TreeVerifier` over a fairseq `TransformerDecoder`, with a cache.

    A batch is read either in blocks or in trees. Where passes are captured, `captured` is asked first; what it does not
    take, such as a large block or a search rule that no graph has, is computed one operation after the other.
    """

    def __init__(
        self,
        decoder: TransformerDecoderBase,
        arithmetic: Arithmetic = AS_THE_MODEL,
        way: Way = ONE_BY_ONE,
        extra_embeddings: Tensor | None = None,
    ) -> None:
        """`extra_embeddings`: see `Parts`; blocks can contain these symbols.

        Raises:
            ValueError: the engine, or this way to run a model, does not support the decoder.
            AggdecError: the precision is not available on the decoder's device.
        """
        reason = unsupported_decoder(decoder, DECODERS)
        if reason is not None:
            raise ValueError(f"the block engine does not support {reason}")
        words, activation = decoder.embed_tokens.weight, decoder.layers[0].activation_fn
        self.backend = choose_backend(words, arithmetic, activation, way)
        """the backend that computes the layers"""
        self.parts = Parts(decoder, self.backend, extra_embeddings)
        self.captured = Captured(self.parts) if way.captures else None
        """passes that are captured as CUDA graphs; None: none are"""
        self.memory: Memory | StaticMemory = Memory(self.parts) if self.captured is None else self.captured.memory
        self.proposals: Proposals | None = None
        """the heads that draft; None: the decoder has none"""
        if isinstance(decoder, BlockwiseDecoder):
            self.proposals = Proposals(decoder, self.parts, self.captured)
        self.can_be_ragged = not self.backend.padding_is_free and self.captured is None and self.proposals is None
        """whether the padding of a block is left out; heads read any column"""
        self._attends = False  # whether the layers know this batch's sources

    def start(self, encoder_out: dict[str, Any], temperature: float = 1.0) -> None:
        """Start a new batch.

        Args:
            encoder_out: fairseq's, `encoder_out["encoder_out"][0]` of S x B x C.
            temperature: divides the logits that `score` returns.
        """
        self.memory.start(encoder_out)
        self.memory.temperature, self._attends = temperature, False
        if self.proposals is not None:
            self.proposals.start()

    def keep(self, order: Order) -> None:
        self.memory.keep(order)
        self._attends = False
        if self.proposals is not None:
            self.proposals.keep(order)

    def verify(self, block: Block, rules: SearchRules, ranks: int = 0, sequence: Tensor | None = None) -> Chosen:
        chosen = None if self.captured is None else blocks.verify(self.captured, block, rules, ranks)
        if chosen is not None:
            return chosen
        return choose_block(self.score(block), self.backend.choice, block, rules, ranks, sequence)

    def verify_tree(
        self, block: TreeBlock, rules: SearchRules, count: int, sequences: Tensor | None = None
    ) -> Iterator[Entries]:
        entries = None if self.captured is None else trees.verify(self.captured, block, rules, count)
        if entries is not None:
            return iter([entries])
        return entries_behind(self.score_tree(block), self.backend.choice, block, rules, count, sequences)

    def score(self, block: Block) -> Iterator[Tensor]:
        """Read a block, and return the logits after its tokens over the temperature, in chunks of n x V."""
        ragged = block.ragged
        features = None if self.captured is None else blocks.read(self.captured, block)
        padding = len(ragged.widths) * ragged.width - ragged.size
        if features is not None:
            features = ragged.pack(features)
        elif self.can_be_ragged and padding > _MAX_PADDING_READ:
            features = self.features(block.tokens, block.starts, block.last_start, ragged=ragged)
        else:
            features = ragged.pack(self.features(block.tokens, block.starts, block.last_start))
        yield from self._scores(features)

    def score_tree(self, block: TreeBlock) -> Iterator[Tensor]:
        """Read a block of a tree; as `score`."""
        block = block.on(self.parts.device)
        x = self.parts.read(block.tokens, block.positions, block.last_position + 1)
        cache = self.memory.cache
        cache.reserve(block.end)
        x = self._layers().tree(x, cache, block.positions, block.paths, block.end, block.ragged)
        yield from self._scores(self.parts.features(x))

    def features(
        self,
        block: Tensor | None,
        starts: Tensor,
        last_start: int,
        *,
        reach: Tensor | None = None,
        embeddings: Tensor | None = None,
        wanted: Tensor | None = None,
        ragged: Ragged | None = None,
    ) -> Tensor:
        """Decoder output before the vocabulary projection, B x W x D, or fewer columns; ragged, N x D.

        Args:
            block: B x W tokens; unused with `embeddings`.
            starts: B, the position of each row's first block token.
            last_start: the largest entry of `starts`, on the host.
            reach: B x W, the last position that each query attends to, at most `last_start` + W - 1; None: its own
                (causal).
            embeddings: B x W x D, replaces the tokens' own embeddings before positions are added (scaled, after
                `project_in_dim`).
            wanted: the columns to return, B x k; None: all. For others the last layer computes keys and values only.
            ragged: the valid entries of the block; None: all.
        """
        read = block if embeddings is None else embeddings
        assert read is not None
        width = read.size(1) if ragged is None else ragged.width
        end = last_start + width
        positions: range | Tensor = range(last_start, end)  # of one row, on the host
        if ragged is not None:
            read, positions = ragged.pack(read), starts[ragged.rows] + ragged.columns
        elif starts.size(0) > 1:
            positions = starts[:, None] + torch.arange(width, device=starts.device)
        x = (self.parts.read if embeddings is None else self.parts.placed)(read, positions, end)
        cache = self.memory.cache
        cache.reserve(end)
        x = self._layers().block(x, cache, starts[:, None], end, ragged=ragged, reach=reach, wanted=wanted)
        features = self.parts.features(x)
        if self.proposals is not None:
            self.proposals.read(features, starts)
        return features

    def _layers(self) -> Any:
        """The layers, which attend to this batch's sources."""
        if not self._attends:
            self.parts.layers.attend_to(self.memory.cross, self.memory.padding)
            self._attends = True
        return self.parts.layers

    def _scores(self, features: Tensor) -> Iterator[Tensor]:
        is_one = self.backend.reads_wait or features.size(0) <= _LOGITS_CHUNK
        for part in (features,) if is_one else features.split(_LOGITS_CHUNK):
            yield self.parts.scores(part, self.memory.temperature)
