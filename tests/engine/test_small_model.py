"""An ordinary model drafts for a random verifier, token by token."""

from typing import Any
from unittest import mock

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator

from fairseq_aggdec.decoding.tokens import Block, RowSelection
from fairseq_aggdec.engine.drafter import LoadedDrafter
from tests.support.random_models import random_batch
from tests.support.small_generators import FEW_WORDS, cached_model


def greedy(small: Any, sample: dict[str, Any], row: int, text: list[int]) -> list[int]:
    """The next four tokens by stock fairseq, up to the first EOS; the text begins with one."""
    net_input = sample["net_input"].items()
    alone = {"net_input": {name: value[[row]] for name, value in net_input}}
    generator = SequenceGenerator(
        [small], FEW_WORDS, beam_size=1, max_len_b=len(text) + 3
    )
    prefix = torch.tensor([text[1:]]) if len(text) > 1 else None
    ((best,),) = generator.generate([], alone, prefix_tokens=prefix)
    return best["tokens"].tolist()[len(text) - 1 :][:4]


@pytest.mark.parametrize(
    "shape, backend",
    [
        ("pre-norm sinusoidal", ""),
        ("shared output projection", "graphs"),
        ("cross-self-attention", ""),
    ],
)
@torch.no_grad()
def test_drafts_are_the_small_models_own_greedy_tokens(
    shape: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After texts that accept all of the last draft, some or none, or go back, and after rows have left the batch.

    At times two tokens follow what is accepted, as where an iteration had no draft.
    """
    monkeypatch.setenv("AGGDEC_BACKEND", backend)
    small = cached_model(shape, 2)
    sample = random_batch(2, FEW_WORDS, [5, 9, 2, 7])
    model = LoadedDrafter(small).start(sample["net_input"], torch.float32)
    rows = [0, 1, 2, 3]
    texts = [[FEW_WORDS.eos()] for _ in range(4)]
    with mock.patch.object(Block, "of_draft", wraps=Block.of_draft) as of_draft:
        for turn in range(8):
            if turn == 5:
                rows = [3, 1]
                model.keep(RowSelection(rows, torch.device("cpu")))
                texts = [texts[row][: 1 + row] for row in rows]
            of_draft.reset_mock()
            drafts = model.draft(texts, 4).tolist()
            read = of_draft.call_args_list[0].args[3]
            # the bonus token, of a draft that passed as a whole the last one, too
            assert max(read) <= 2 + (turn % 2 == 0)
            for place, row in enumerate(rows):
                own = greedy(small, sample, row, texts[place])
                assert drafts[place][: len(own)] == own
                texts[place] = [
                    *texts[place],
                    *own[: (turn + row) % 5],
                    *[4 + turn] * (1 + turn % 2),
                ]
