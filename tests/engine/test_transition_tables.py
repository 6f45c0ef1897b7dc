"""Drafts of a transition head against a slow walk over the whole vocabulary, or over a block's candidates."""

import pytest
import torch
from torch import Tensor

from fairseq_aggdec.engine.draft_decoder import DraftDecoder
from fairseq_aggdec.models.nar_drafter import NarDrafterModel
from tests.support.random_models import dictionary, random_batch, random_drafter, texts_of

pytestmark = pytest.mark.usefixtures("either_engine")

VOCABULARY = dictionary(8)  # fewer symbols than candidates, so that the tables decide among all
K = 5


def walk(model: NarDrafterModel, features: Tensor, last: int) -> tuple[list[int], Tensor]:
    """Tokens of one block (k x D) and the logits they were chosen from, k x V."""
    decoder, tokens, rows = model.decoder, [last], []
    for feature in features:
        logits = decoder.output_layer(decoder.transitions(feature, decoder.embed(torch.tensor(tokens[-1]))))
        rows.append(logits.clone())
        tokens.append(int(decoder.best_tokens(logits)))
    return tokens[1:], torch.stack(rows)


@pytest.mark.parametrize("shape", ["causal, pre-norm sinusoidal", "bidirectional"])
@torch.no_grad()
def test_each_token_is_the_best_after_the_one_before(shape: str) -> None:
    differ = 0
    for seed, rows in enumerate((1, 3, 3)):
        model = random_drafter(shape, seed, VOCABULARY, VOCABULARY, K, transition_dim=6)
        source = random_batch(seed, VOCABULARY, [4, 7, 2][:rows])["net_input"]
        tokens = torch.randint(VOCABULARY.nspecial, len(VOCABULARY), (rows, 9))
        tokens[:, 0] = VOCABULARY.eos()
        lengths = torch.tensor([3, 1, 6][:rows])
        drafter, scorer = DraftDecoder(model.decoder), DraftDecoder(model.decoder)
        for engine in (drafter, scorer):
            engine.start(model.encoder(**source))
        drafted = drafter.draft(texts_of(tokens, lengths), K)
        logits = scorer._scores(texts_of(tokens, lengths), K)
        features = model.decoder(tokens, model.encode(**source), lengths[:, None] - 1)[:, 0]  # B x k x D
        for row in range(rows):
            expected, scores = walk(model, features[row], int(tokens[row, lengths[row] - 1]))
            assert drafted[row].tolist() == expected
            torch.testing.assert_close(logits[row], scores, atol=1e-4, rtol=1e-4)
            differ += expected != model.decoder.best_tokens(model.decoder.output_layer(features[row])).tolist()
    assert differ > 0, "the head changes some of the drafts"
