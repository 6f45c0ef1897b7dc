"""The transition head: it starts without effect, and training shows it the right token before each position."""

import torch

from fairseq_aggdec.models.block_sampling import blocks_at
from fairseq_aggdec.models.nar_drafter import NarDrafterModel
from fairseq_aggdec.models.transition_head import TransitionHead
from tests.random_drafters import random_drafter
from tests.random_models import dictionary, random_batch

WORDS = dictionary(20)
K = 4
SHAPE = "causal, pre-norm sinusoidal"


def drafter(transition_dim: int) -> NarDrafterModel:
    return random_drafter(SHAPE, 3, WORDS, WORDS, K, transition_dim=transition_dim)


def targets() -> torch.Tensor:
    words = torch.randint(WORDS.nspecial, len(WORDS), (3, 7), generator=torch.Generator().manual_seed(2))
    for row, length in enumerate((7, 4, 1)):
        words[row, length - 1] = WORDS.eos()
        words[row, length:] = WORDS.pad()
    return words


@torch.no_grad()
def trained_on(model: NarDrafterModel, prefix_lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    source = random_batch(1, WORDS, [3, 7, 5], True)["net_input"]
    words = targets()
    inputs = torch.cat([torch.full((3, 1), WORDS.eos()), words[:, :-1]], dim=1)
    blocks = blocks_at(words, prefix_lengths, K, WORDS.pad())
    return model(source["src_tokens"], source["src_lengths"], inputs, blocks=blocks)


@torch.no_grad()
def test_a_new_head_changes_nothing() -> None:
    features, before = torch.randn(2, 3, 16), torch.randn(2, 3, 16)
    assert torch.equal(TransitionHead(16, 8)(features, before), features)


@torch.no_grad()
def test_scores_look_at_the_right_token_before() -> None:
    model = drafter(8)
    decoder, head = model.decoder, model.decoder.transitions
    torch.nn.init.normal_(head.out.weight)
    lengths = torch.tensor([[0, 3], [2, 1], [0, 0]])
    logits, trained = trained_on(model, lengths)
    source = random_batch(1, WORDS, [3, 7, 5], True)["net_input"]
    words = targets()
    inputs = torch.cat([torch.full((3, 1), WORDS.eos()), words[:, :-1]], dim=1)
    features = decoder(inputs, model.encode(**source), lengths)  # B x R x k x D
    expected = []
    for row, block, step in trained.nonzero().tolist():
        number = int(lengths[row, block]) + step  # of the predicted token in `words`
        before = decoder.embed(words[row, number - 1] if number else torch.tensor(WORDS.eos()))
        x = features[row, block, step]
        hidden = (head.before.weight @ before + head.here.weight @ x + head.here.bias).clamp(min=0)
        expected.append(decoder.output_layer(x + head.out.weight @ hidden))
    torch.testing.assert_close(logits, torch.stack(expected), atol=1e-4, rtol=1e-4)
