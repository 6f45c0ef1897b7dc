"""The engine's heads against the model's own, and its head 1 against the base model's engine."""

from collections.abc import Iterator

import pytest
import torch

from fairseq_aggdec.decoding.tokens import Order
from fairseq_aggdec.decoding.top_k import best_tokens
from fairseq_aggdec.engine.decoder import Decoder
from tests.support.random_models import (
    HEAD_KINDS,
    dictionary,
    random_batch,
    random_blockwise,
)
from tests.support.scripted_decoding import scored

WORDS = dictionary(20)
K = 5


@pytest.fixture(autouse=True)
def no_gradients() -> Iterator[None]:
    """As in decoding."""
    with torch.no_grad():
        yield


@pytest.mark.parametrize("kind", HEAD_KINDS)
@pytest.mark.parametrize("shape", ["post-norm sinusoidal", "narrow embeddings"])
def test_logits_and_proposals_are_the_models(kind: str, shape: str) -> None:
    """Rows of different lengths, of which one leaves."""
    model = random_blockwise(shape, kind, 2, WORDS, WORDS, K)
    encoder_out = model.encoder(**random_batch(1, WORDS, [4, 7, 2])["net_input"])
    tokens = torch.randint(4, 24, (3, 9), generator=torch.Generator().manual_seed(1))
    features = model.decoder.extract_features(tokens, encoder_out)[0]
    engine = Decoder(model.decoder)
    assert engine.proposals is not None
    engine.start(encoder_out)
    assert engine.proposals.propose([2, 2, 2], K) is None
    first = scored(engine, tokens[:, :4], torch.zeros(3, dtype=torch.long))
    torch.testing.assert_close(first, model.decoder.output_layer(features[:, :4]), rtol=1e-4, atol=1e-4)
    starts = torch.tensor([2, 0, 4])
    block = torch.stack([tokens[row, start : start + 5] for row, start in enumerate(starts)])
    scored(engine, block, starts)
    lengths = torch.tensor([2 + 5, 0 + 3, 4 + 2])  # the last token was chosen at the last, the third, the first column
    kept = torch.tensor([0, 2])
    for rows, last in ((torch.arange(3), K), (kept, K), (kept, 2), (kept, 3)):
        if rows is kept and last == K:
            engine.keep(Order(kept.tolist(), kept.device))
        proposals = engine.proposals.propose(lengths[rows].tolist(), last)
        assert proposals is not None
        at = features[rows, lengths[rows] - 2]
        expected = torch.stack([model.decoder.head_logits(at, head) for head in range(2, last + 1)], dim=1)
        assert torch.equal(proposals, best_tokens(expected, model.decoder.never_proposed))
