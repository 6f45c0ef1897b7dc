"""An encoder whose passes are captured as CUDA graphs."""

import torch
from fairseq.models.transformer import TransformerEncoderBase
from torch import Tensor

from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL, Arithmetic
from fairseq_aggdec.engine.block_encoder import BlockEncoder
from fairseq_aggdec.engine.choose_backend import backend_of_graphs
from fairseq_aggdec.engine.graphs.buffers import MOST_TOKENS, rows_bucket, source_bucket
from fairseq_aggdec.engine.graphs.graphs import Function, Graphs


class GraphEncoder(BlockEncoder):
    """A `BlockEncoder` whose batches are filled up to a few sizes with padding."""

    def __init__(
        self,
        encoder: TransformerEncoderBase,
        arithmetic: Arithmetic = AS_THE_MODEL,
        clamps: bool = False,
        kernels: bool = False,
    ) -> None:
        """See `BlockEncoder`; `kernels`: by Triton, where they are the faster way."""
        backend = backend_of_graphs(encoder.embed_tokens.weight, arithmetic, kernels)
        super().__init__(encoder, arithmetic, clamps, backend)
        self._graphs = Graphs.on(self.device, backend.drop_kernels)

    def _encoded(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        (batch_size, length), rows, source = tokens.shape, rows_bucket(tokens.size(0)), source_bucket(tokens.size(1))
        if rows * source > MOST_TOKENS and not self._aligns:
            return super()._encoded(tokens)
        # sinusoidal positions that grow move
        table = None if self._positions is None else self._positions.reaching(source).data_ptr()
        graph = self._graphs.get(("encoder", rows, source, table), 0, lambda: self._pass(rows, source))
        read = graph.inputs[0]
        read.fill_(self.pad)
        read[:batch_size, :length] = tokens
        self._graphs.run(graph)
        # copies: other batches' passes overwrite the results, and a drafter may read them late
        states, embedding = (result[:batch_size, :length].clone() for result in graph.results)
        return states, embedding, tokens.eq(self.pad)

    def _pass(self, rows: int, source: int) -> tuple[Function, list[Tensor]]:
        """The function of a pass, and its input, the tokens."""
        tokens = torch.full((rows, source), self.pad, dtype=torch.long, device=self.device)

        def encode(numbers: Tensor) -> tuple[Tensor, ...]:
            return numbers, *self._states(tokens, tokens.eq(self.pad))

        return encode, [tokens]
