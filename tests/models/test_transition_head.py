"""The transition head: it starts without effect; the loss shows it the right token before each position, and the first
pass of glancing its own choice."""

import torch

from fairseq_aggdec.models.block_sampling import blocks_at
from fairseq_aggdec.models.transition_head import TransitionHead
from tests.random_drafters import random_drafter
from tests.random_models import dictionary, random_batch

WORDS = dictionary(20)
K = 4
SHAPE = "causal, pre-norm sinusoidal"


@torch.no_grad()
def test_a_new_head_changes_nothing() -> None:
    features, before = torch.randn(2, 3, 16), torch.randn(2, 3, 16)
    assert torch.equal(TransitionHead(16, 8)(features, before), features)


@torch.no_grad()
def test_scores_look_at_the_right_token_before() -> None:
    model = random_drafter(SHAPE, 3, WORDS, WORDS, K, transition_dim=8)
    decoder, head = model.decoder, model.decoder.transitions
    torch.nn.init.normal_(head.out.weight)
    lengths = torch.tensor([[0, 3], [2, 1], [0, 0]])
    source = random_batch(1, WORDS, [3, 7, 5], True)["net_input"]
    words = torch.randint(WORDS.nspecial, len(WORDS), (3, 7), generator=torch.Generator().manual_seed(2))
    for row, length in enumerate((7, 4, 1)):
        words[row, length - 1] = WORDS.eos()
        words[row, length:] = WORDS.pad()
    inputs = torch.cat([torch.full((3, 1), WORDS.eos()), words[:, :-1]], dim=1)
    blocks = blocks_at(words, lengths, K, WORDS.pad())
    logits, trained = model(source["src_tokens"], source["src_lengths"], inputs, blocks=blocks)
    features = decoder(inputs, model.encode(**source), lengths)  # B x R x k x D
    expected = []
    for row, block, step in trained.nonzero().tolist():
        number = int(lengths[row, block]) + step  # of the predicted token in `words`
        before = decoder.embed(words[row, number - 1] if number else torch.tensor(WORDS.eos()))
        x = features[row, block, step]
        hidden = (head.before.weight @ before + head.here.weight @ x + head.here.bias).clamp(min=0)
        expected.append(decoder.output_layer(x + head.out.weight @ hidden))
    torch.testing.assert_close(logits, torch.stack(expected), atol=1e-4, rtol=1e-4)
