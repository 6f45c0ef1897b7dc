"""The engine's heads against the model's own."""

from dataclasses import replace

import pytest
import torch

from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block, RowSelection
from fairseq_aggdec.decoding.top_k import best_tokens
from fairseq_aggdec.engine.arithmetic import AS_THE_MODEL
from fairseq_aggdec.engine.choose_backend import GRAPHS, ONE_BY_ONE
from fairseq_aggdec.engine.decoder import Decoder
from tests.support.random_models import (
    HEAD_KINDS,
    dictionary,
    random_batch,
    random_blockwise,
)
from tests.support.scripted_decoding import EOS, PAD, UNK

WORDS = dictionary(20)
K = 5
RULES = SearchRules(PAD, UNK, EOS, max_len=20, min_len=0)

pytestmark = pytest.mark.usefixtures("no_gradients")


@pytest.mark.parametrize("kind", HEAD_KINDS)
@pytest.mark.parametrize("shape", ["post-norm sinusoidal", "narrow embeddings"])
@pytest.mark.parametrize(
    "captured, rules",
    [(False, RULES), (True, RULES), (True, replace(RULES, unk_penalty=0.1))],
)
@pytest.mark.parametrize("most", [0, 4096])
def test_choices_and_proposals_are_the_models(
    kind: str,
    shape: str,
    captured: bool,
    rules: SearchRules,
    most: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows of different lengths, of which one leaves; tokens are chosen in or after a graph, or all without one."""
    model = random_blockwise(shape, kind, 2, WORDS, K)
    encoder_out = model.encoder(**random_batch(1, WORDS, [4, 7, 2])["net_input"])
    tokens = torch.randint(
        4,
        24,
        (3, 9),
        generator=torch.Generator().manual_seed(1),
    )
    features = model.decoder.extract_features(tokens, encoder_out)[0]
    engine = Decoder(model.decoder, AS_THE_MODEL, GRAPHS if captured else ONE_BY_ONE)
    assert engine.proposals is not None
    for _ in range(2):  # batches
        engine.start(encoder_out)
        assert engine.proposals.propose([2, 2, 2], K) is None
        found = engine.verify(Block.of(tokens[:, :4], [0, 0, 0]), rules)
        log_probs = model.decoder.output_layer(features[:, :4]).log_softmax(-1)
        log_probs[..., UNK] -= rules.unk_penalty
        log_probs[..., PAD] = -torch.inf
        torch.testing.assert_close(
            found.log_probs, log_probs.flatten(0, 1).amax(1), rtol=1e-4, atol=1e-4
        )
        starts = torch.tensor([2, 0, 4])
        block = torch.stack(
            [tokens[row, start : start + 5] for row, start in enumerate(starts)]
        )
        with monkeypatch.context() as patch:
            patch.setattr("fairseq_aggdec.engine.graphs.runner.MOST_TOKENS", most)
            engine.verify(Block.of(block, starts.tolist()), rules)
        # chosen at the last, the third and the first column: the last
        lengths = torch.tensor([2 + 5, 0 + 3, 4 + 2])
        kept = torch.tensor([0, 2])
        for rows, last in (
            (torch.arange(3), K),
            (kept, K),
            (kept, 2),
            (kept, 3),
        ):
            if rows is kept and last == K:
                engine.keep(RowSelection(kept.tolist(), kept.device))
            proposals = engine.proposals.propose(lengths[rows].tolist(), last)
            assert proposals is not None
            at = features[rows, lengths[rows] - 2]
            expected = torch.stack(
                [model.decoder.head_logits(at, head) for head in range(2, last + 1)],
                dim=1,
            )
            assert torch.equal(
                proposals, best_tokens(expected, model.decoder.never_proposed)
            )
