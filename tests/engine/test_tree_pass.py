"""A pass over a tree of prefixes: behind each of them what the model says that reads that prefix alone."""

import random
from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_aggdec.decoding.beam.prefix_tree import Node, PrefixTree, Row
from fairseq_aggdec.decoding.beam.roles import TreeBlock, TreeVerifier
from fairseq_aggdec.engine.block_decoder import BlockDecoder
from fairseq_aggdec.engine.ensemble import EnsembleVerifier
from tests.random_models import ENGINE_SHAPES, dictionary, model_of_shape, random_batch

pytestmark = pytest.mark.usefixtures("either_engine")

WORDS = dictionary(20)
LONGEST = 30


def grown(tree: PrefixTree, rng: random.Random, count: int) -> list[Node]:
    """Some new prefixes of a tree, and what they stand behind, ready to be read."""
    known = [tree.root]
    while len(known) < count:
        known.append(rng.choice(known[-4:]).child(rng.randrange(4, len(WORDS))))
    return tree.admit(rng.sample(known, len(known)), len(WORDS), LONGEST)


def read(verifier: TreeVerifier, sentences: list[list[Node]], trees: list[PrefixTree]) -> Tensor:
    block = TreeBlock.of(sentences, max(tree.slots for tree in trees), torch.device("cpu"))
    rows = torch.cat(list(verifier.score_tree(block)))
    for tree, nodes in zip(trees, sentences, strict=True):
        tree.take_in(nodes, [Row([], []) for _ in nodes])
    return rows.log_softmax(dim=-1)


def by_fairseq(models: list[Any], sample: dict[str, Any], row: int, nodes: list[Node]) -> Tensor:
    """Of each prefix, a full forward pass."""
    source = {name: value[row : row + 1] for name, value in sample["net_input"].items()}
    found = []
    for node in nodes:
        outs = [model.decoder(torch.tensor([node.tokens()]), encoder_out=model.encoder(**source)) for model in models]
        probs = [
            model.get_normalized_probs(out, log_probs=True)[0, -1] for model, out in zip(models, outs, strict=True)
        ]
        found.append(torch.stack(probs).exp().mean(dim=0).log())
    return torch.stack(found)


def started(models: list[Any], sample: dict[str, Any]) -> TreeVerifier:
    members = []
    for model in models:
        members.append(BlockDecoder(model.decoder))
        members[-1].start(model.encoder(**sample["net_input"]))
    return members[0] if len(members) == 1 else EnsembleVerifier(members)


@pytest.mark.parametrize(
    ("shape", "rows"), [*((shape, 3) for shape in ENGINE_SHAPES), *((shape, 1) for shape in ENGINE_SHAPES[:2])]
)
@torch.no_grad()
def test_rows_of_any_tree(shape: str, rows: int) -> None:
    """Several passes, each over what the last ones have left; trees of different sizes; slots that are used again."""
    rng = random.Random(rows)
    models = [model_of_shape(shape, 1, WORDS, WORDS)]
    sample = random_batch(1, WORDS, [9 - 3 * row for row in range(rows)])
    verifier, trees = started(models, sample), [PrefixTree(WORDS.eos()) for _ in range(rows)]
    for number in range(3):
        sentences = [grown(tree, rng, 3 + 5 * number + 4 * row) for row, tree in enumerate(trees)]
        found = read(verifier, sentences, trees)
        wanted = [by_fairseq(models, sample, row, nodes) for row, nodes in enumerate(sentences)]
        torch.testing.assert_close(found, torch.cat(wanted), atol=2e-5, rtol=1e-5)
        for tree in trees:
            tree._free_dead([tree.root.child(next(iter(tree.root.children)))])


@torch.no_grad()
def test_ensembles_and_rows_that_leave() -> None:
    rng = random.Random(1)
    models = [model_of_shape(ENGINE_SHAPES[seed], seed, WORDS, WORDS) for seed in (0, 1)]
    sample = random_batch(1, WORDS, [7, 4, 2])
    verifier, trees = started(models, sample), [PrefixTree(WORDS.eos()) for _ in range(3)]
    read(verifier, [grown(tree, rng, 9) for tree in trees], trees)
    verifier.keep(torch.tensor([2, 0]))
    trees = [trees[2], trees[0]]
    sentences = [grown(tree, rng, 30) for tree in trees]
    found = read(verifier, sentences, trees)
    wanted = [by_fairseq(models, sample, row, nodes) for row, nodes in zip((2, 0), sentences, strict=True)]
    torch.testing.assert_close(found, torch.cat(wanted), atol=2e-5, rtol=1e-5)
