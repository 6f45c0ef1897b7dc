"""The transition head: it starts without effect, and then adds a function of a position and the token before it."""

import torch

from fairseq_aggdec.models.nar_drafter_decoder import TransitionHead


@torch.no_grad()
def test_a_new_head_changes_nothing_and_a_trained_one_looks_at_the_token_before() -> None:
    head, x, before = TransitionHead(16, 8), torch.randn(2, 3, 16), torch.randn(2, 3, 16)
    assert torch.equal(head(x, before), x)
    torch.nn.init.normal_(head.out.weight)
    hidden = (before @ head.before.weight.T + x @ head.here.weight.T + head.here.bias).clamp(min=0)
    torch.testing.assert_close(head(x, before), x + hidden @ head.out.weight.T, atol=1e-5, rtol=1e-5)
