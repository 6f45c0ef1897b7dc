"""What the verifier says of a block, token by token (papers/000 Eqs. 5 to 9, papers/004 §5)."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_aggdec.decoding.acceptance import NOTHING, Acceptance
from fairseq_aggdec.decoding.roles import Block, Draft, Verifier
from fairseq_aggdec.decoding.search_rules import SearchRules


class Verdict(NamedTuple):
    """What becomes output at every position of a block, should the output get that far."""

    passed: Tensor
    """B x W: whether the draft token behind the position passes; at the end of a draft there is none"""
    tokens: Tensor
    """B x W: the draft token where it passed, the verifier's own elsewhere"""
    log_probs: Tensor
    """B x W: of `tokens`, by the verifier"""


def judge(
    verifier: Verifier, rules: SearchRules, accept: Acceptance, block: Block, draft: Draft, sequence: Tensor
) -> Verdict:
    """Read a block in one pass and judge its draft.

    Behind a row's first draft token that did not pass, nothing of this is used.

    Args:
        verifier: reads the block.
        rules: what it may choose.
        accept: which draft tokens pass.
        block: B x W.
        draft: that is in it.
        sequence: B x L, the decoder's inputs up to the block's end, for rules that look back.
    """
    ragged, starts = block.ragged, block.starts
    proposed = ragged.pack(F.pad(block.tokens[:, 1:], (0, 1), value=NOTHING))  # N: what was drafted behind each token
    if draft.known is None or ragged.entries is not None:  # otherwise a row's tokens end with the block
        proposed = proposed.masked_fill(ragged.columns >= draft.lengths[ragged.rows], NOTHING)
    positions = starts[ragged.rows] + ragged.columns  # N
    looks_back = rules.no_repeat_ngram_size > 1
    judged: list[tuple[Tensor, ...]] = []
    first = 0
    for scores in verifier.score(block):  # n x V
        part = slice(first, first + scores.size(0))
        rows = ragged.rows[part]
        seen = sequence[rows] if looks_back else sequence
        choices = rules.keep(rows).choose(
            scores[:, None], positions[part], seen, block.first_start, block.last_start + ragged.width - 1
        )
        judged.append(accept.by_token(proposed[part, None], choices))
        first += scores.size(0)
    by_token = judged[0] if len(judged) == 1 else tuple(torch.cat(entries) for entries in zip(*judged, strict=True))
    # behind a row's tokens its last one is repeated, behind which nothing was drafted
    return Verdict(*accept.by_block(*(ragged.spread(entries.squeeze(1)) for entries in by_token)))
