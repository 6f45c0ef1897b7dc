"""The forward pass of a stock fairseq Transformer decoder for a block of tokens.

fairseq's own decoder with an incremental state reads one token and drops the causal mask. This one reads any number of
tokens at any position of each row, with the same weights.
"""

from collections.abc import Iterator
from typing import Any

from fairseq.models.transformer import TransformerDecoderBase
from torch import Tensor

from fairseq_aggdec.decoding.beam.roles import Entries, TreeBlock, TreeVerifier
from fairseq_aggdec.decoding.roles import Verifier
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block, Chosen, RowSelection
from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.choose_backend import ONE_BY_ONE, Way, choose_backend
from fairseq_aggdec.engine.graphs.runner import Graphs
from fairseq_aggdec.engine.memory import Memory
from fairseq_aggdec.engine.parts import Parts
from fairseq_aggdec.engine.plain.layers import KVCache
from fairseq_aggdec.engine.proposals import Proposals
from fairseq_aggdec.engine.runner import Eager, Runner
from fairseq_aggdec.engine.supported_models import DECODERS, unsupported_decoder
from fairseq_aggdec.models.blockwise_transformer import BlockwiseDecoder


class Decoder(Verifier, TreeVerifier):
    """A `roles.Verifier` and a `TreeVerifier` over a fairseq `TransformerDecoder`, with a cache.

    A batch is read either in blocks or in trees.
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
        activation = decoder.layers[0].activation_fn
        self.backend = choose_backend(
            decoder.embed_tokens.weight, arithmetic, activation, way
        )
        """the backend that computes the layers"""
        self.parts = Parts(decoder, self.backend, extra_embeddings)
        self.runner: Runner
        """runs the passes"""
        if way.captures:
            self.runner = Graphs(self.parts)
            self.eager = self.runner.eager
        else:
            self.runner = self.eager = Eager(
                self.parts, Memory(self.parts, KVCache(*self.parts.sizes))
            )
        self.proposals: Proposals | None = None
        """the heads that draft; None: the decoder has none"""
        if isinstance(decoder, BlockwiseDecoder):
            self.proposals = Proposals(
                decoder, self.parts, self.runner, self.eager.memory
            )

    def start(self, encoder_out: dict[str, Any], temperature: float = 1.0) -> None:
        """Start a new batch.

        Args:
            encoder_out: fairseq's, `encoder_out["encoder_out"][0]` of S x B x C.
            temperature: divides the logits that `score` returns.
        """
        self.eager.start(encoder_out, temperature)

    def keep(self, order: RowSelection) -> None:
        self.eager.keep(order)

    def verify(
        self,
        block: Block,
        rules: SearchRules,
        ranks: int = 0,
        sequence: Tensor | None = None,
    ) -> Chosen:
        return self.runner.block(block, rules, ranks, sequence)

    def verify_tree(
        self,
        block: TreeBlock,
        rules: SearchRules,
        count: int,
        sequences: Tensor | None = None,
    ) -> Iterator[Entries]:
        return self.runner.tree(block, rules, count, sequences)

    def score(self, block: Block) -> Iterator[Tensor]:
        """Read a block, and return the logits after its tokens over the temperature, in chunks of n x V."""
        return self.eager.scores(self.runner.read(block))

    def score_tree(self, block: TreeBlock) -> Iterator[Tensor]:
        """Read a block of a tree; as `score`."""
        return self.eager.scores(self.eager.read_tree(block))
