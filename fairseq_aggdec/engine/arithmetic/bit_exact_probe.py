"""Whether bit-exact decoding holds where it is asked for: engines are run on a few shapes and compared with themselves.

A processor, a library or a number of threads for which nobody has measured it is found out before anything is decoded.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from fairseq_aggdec.decoding.roles import Block
from fairseq_aggdec.engine.arithmetic.bit_exact import exact_rows
from fairseq_aggdec.engine.block_decoder import BlockDecoder
from fairseq_aggdec.engine.block_encoder import BlockEncoder

_SOURCES = (13, 1, 37, 16, 24)  # lengths
_TOKENS = 44  # of the target
_WIDTHS = (1, 2, 5, 11, 26)
_STARTS = (0, 9, 3, 17, 1)  # of the rows of a batch of blocks


class BitExactProbe:
    """Asks an encoder and a decoder for the same results in several ways."""

    def __init__(self, encoder: BlockEncoder, decoder: BlockDecoder) -> None:
        """Both of one model, in bit-exact mode."""
        self._encoder, self._decoder = encoder, decoder
        draw = torch.Generator().manual_seed(1)

        def tokens(symbols: int, rows: int, width: int) -> Tensor:
            return torch.randint(symbols, (rows, width), generator=draw).to(encoder.device)

        self._source = tokens(encoder.symbols, len(_SOURCES), max(_SOURCES))
        self._source[self._source == encoder.pad] = (encoder.pad + 1) % encoder.symbols
        self._target = tokens(decoder.symbols, len(_SOURCES), _TOKENS)

    @torch.no_grad()
    def objection(self) -> str | None:
        """What does not hold here, or None."""
        alone = [self._encode([row]) for row in range(len(_SOURCES))]
        together = self._encode(range(len(_SOURCES)))
        for row, length in enumerate(_SOURCES):
            if not torch.equal(_states(alone[row])[:length, 0], _states(together)[:length, row]):
                return f"a sentence of {length} tokens is encoded otherwise in a batch than alone"
        expected = self._in_blocks(together, [_TOKENS])  # B x T x V
        if not torch.isfinite(expected).all():
            return "the model's scores are not all finite numbers"
        features = torch.linspace(-3, 3, expected.size(0) * _TOKENS * self._decoder.dim, device=expected.device)
        features = features.sin().to(_states(together)).view(-1, self._decoder.dim)  # N x D
        projected = self._decoder.project(features)
        for rows in map(exact_rows, _WIDTHS):
            if not torch.equal(self._decoder.project(features[1 : 1 + rows]), projected[1 : 1 + rows]):
                return f"a product with weights gives a row other numbers among {rows} rows than among {len(features)}"
        first = self._in_blocks(alone[0], [_TOKENS])
        if not torch.equal(first[0], expected[0]):
            return f"a block of {_TOKENS} tokens is scored otherwise in a batch than alone"
        for width in _WIDTHS:
            for encoded, rows in ((alone[0], 1), (together, len(_SOURCES))):
                widths = [width] * (26 // width)
                actual = self._in_blocks(encoded, widths)
                if not torch.equal(actual, expected[:rows, : actual.size(1)]):
                    return f"tokens in {rows} blocks of {width} are scored otherwise than in blocks of {_TOKENS}"
        return None if self._at_own_positions(together, expected) else "rows at different positions disturb each other"

    def _encode(self, rows: "list[int] | range") -> dict[str, list[Tensor]]:
        lengths = torch.tensor([_SOURCES[row] for row in rows])
        tokens = self._source[list(rows), : int(lengths.max())]
        columns = torch.arange(tokens.size(1))
        padded_left = (columns < tokens.size(1) - lengths[:, None]).to(tokens.device)
        shifted = torch.stack([row.roll(-int(length)) for row, length in zip(tokens, lengths, strict=True)])
        return self._encoder(shifted.masked_fill(padded_left, self._encoder.pad))

    def _in_blocks(self, encoded: dict[str, list[Tensor]], widths: list[int]) -> Tensor:
        """Scores of the first tokens, read in blocks of these widths."""
        self._decoder.start(encoded)
        rows, scores, start = _states(encoded).size(1), [], 0
        for width in widths:
            block = self._target[:rows, start : start + width]
            scores.append(self._scores(block, [start] * rows))
            start += width
        return torch.cat(scores, dim=1)

    def _at_own_positions(self, encoded: dict[str, list[Tensor]], expected: Tensor) -> bool:
        self._decoder.start(encoded)
        rows, width = len(_STARTS), 7
        self._scores(self._target[:, : max(_STARTS)], [0] * rows)
        starts = torch.tensor(_STARTS, device=self._target.device)
        places = starts[:, None] + torch.arange(width, device=starts.device)
        scores = self._scores(self._target.gather(1, places), _STARTS)
        return torch.equal(scores, expected[torch.arange(rows, device=starts.device)[:, None], places])

    def _scores(self, tokens: Tensor, starts: Sequence[int]) -> Tensor:
        """Log-probabilities behind each token of a block, B x W x V."""
        block = Block.of(tokens, torch.tensor(starts, device=tokens.device), starts, None)
        return block.ragged.spread(torch.cat(list(self._decoder.score(block)))).log_softmax(dim=-1)


def _states(encoded: dict[str, list[Tensor]]) -> Tensor:
    return encoded["encoder_out"][0]  # S x B x C
