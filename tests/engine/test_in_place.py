"""What the engine writes in place is its own: nothing that a caller, a later block or another row still uses."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fairseq_aggdec.decoding.beam.prefix_tree import PrefixTree
from fairseq_aggdec.decoding.beam.roles import TreeBlock
from fairseq_aggdec.decoding.roles import Block
from fairseq_aggdec.engine.arithmetic.precision import Arithmetic
from fairseq_aggdec.engine.block_decoder import BlockDecoder
from fairseq_aggdec.engine.block_encoder import BlockEncoder
from fairseq_aggdec.engine.draft_decoder import DraftDecoder
from fairseq_aggdec.engine.ensemble import EnsembleVerifier
from fairseq_aggdec.engine.layers import KVCache
from fairseq_aggdec.engine.proposing_decoder import ProposingDecoder
from fairseq_aggdec.engine.recompute import RecomputeVerifier
from tests.random_blockwise import random_blockwise
from tests.random_drafters import random_drafter, texts_of
from tests.random_models import dictionary, random_batch, random_model
from tests.scripted_decoding import scored

WORDS = dictionary(30)
ARITHMETICS = [Arithmetic(), Arithmetic("bf16"), pytest.param(Arithmetic("int8"), marks=pytest.mark.int8)]


def tensors_of(thing: Any, seen: dict[int, Tensor]) -> None:
    """All tensors that can be reached from an object of the engine or fairseq, key-value caches aside."""
    if isinstance(thing, Tensor):
        seen[id(thing)] = thing
    elif isinstance(thing, nn.Module):
        seen.update({id(tensor): tensor for tensor in [*thing.parameters(), *thing.buffers()]})
    elif isinstance(thing, dict):
        for value in thing.values():
            tensors_of(value, seen)
    elif isinstance(thing, list | tuple):
        for value in thing:
            tensors_of(value, seen)
    elif type(thing).__module__.startswith("fairseq_aggdec.") and not isinstance(thing, KVCache):
        tensors_of(getattr(thing, "__dict__", {}), seen)


def leaves_alone(call: Callable[[], Any], *things: Any) -> Any:
    """The result of a call, after which all tensors that these things hold are what they were."""
    seen: dict[int, Tensor] = {}
    tensors_of(list(things), seen)
    dense = [tensor for tensor in seen.values() if tensor.layout == torch.strided and not tensor.is_mkldnn]
    before = [tensor.clone() for tensor in dense]
    result = call()
    for tensor, old in zip(dense, before, strict=True):
        assert torch.equal(tensor, old), f"a tensor of shape {list(tensor.shape)} was written to"
    return result


def cache_memory(decoder: BlockDecoder) -> Tensor:
    memory = decoder._cache.memory
    assert memory is not None
    return memory


def started(rows: int, heads: int, arithmetic: Arithmetic) -> tuple[Any, BlockDecoder, dict[str, Any]]:
    """A model, its engine and the encoder's output of a batch with padding, which the call before has not touched."""
    width = 48 if heads != 16 else 512  # weights of this width are prepacked
    model = random_model(
        1, WORDS, WORDS, encoder_embed_dim=width, decoder_embed_dim=width, decoder_attention_heads=heads
    )
    sample = random_batch(1, WORDS, [5 + row % 3 for row in range(rows)])["net_input"]
    encoder = BlockEncoder(model.encoder, arithmetic)
    encoder_out = leaves_alone(lambda: encoder(sample["src_tokens"]), model, encoder, sample)
    decoder = BlockDecoder(model.decoder, arithmetic=arithmetic)
    leaves_alone(lambda: decoder.start(encoder_out, 1.5), model, encoder_out)
    return model, decoder, encoder_out


@pytest.mark.parametrize("arithmetic", ARITHMETICS, ids=lambda arithmetic: arithmetic.options() or "fp32")
@pytest.mark.parametrize("heads", [1, 16])
@pytest.mark.parametrize("rows", [1, 16])
@torch.no_grad()
def test_blocks_of_a_verifier(rows: int, heads: int, arithmetic: Arithmetic) -> None:
    model, decoder, encoder_out = started(rows, heads, arithmetic)
    begin = 0
    for width in (1, 4, 3, 2):  # the second makes the causal mask of one row, which the others use again
        block = torch.randint(4, 20, (rows, width))
        starts = torch.full((rows,), begin)
        written = cache_memory(decoder)[:, :, :, :begin].clone()
        whole = Block.of(block, starts, [begin] * rows, None)
        leaves_alone(lambda: list(decoder.score(whole)), model, decoder, encoder_out, whole)  # noqa: B023
        assert torch.equal(cache_memory(decoder)[:, :, :, :begin], written), "committed positions are final"
        ragged = Block.of(block, starts, [begin] * rows, [width, *(1 + row % width for row in range(1, rows))])
        leaves_alone(lambda: list(decoder.score(ragged)), model, decoder, encoder_out, ragged)  # noqa: B023
        begin += width
    keep = torch.arange(rows)[: max(1, rows // 2)].flip(0)
    cross, memory = decoder._cross[:, keep].clone(), cache_memory(decoder)[:, keep].clone()
    leaves_alone(lambda: decoder.keep(keep), model, encoder_out, keep)
    assert torch.equal(decoder._cross, cross)
    assert torch.equal(cache_memory(decoder)[:, : keep.numel()], memory)


@pytest.mark.parametrize("rows", [1, 3])
@torch.no_grad()
def test_trees_of_a_verifier(rows: int) -> None:
    """A pass writes to the slots that it was given, and to no other."""
    model, decoder, encoder_out = started(rows, 4, Arithmetic())
    trees = [PrefixTree(WORDS.eos()) for _ in range(rows)]
    for depth in (1, 4):
        nodes = [
            [tree.root.child(4 + row).child(5), *map(tree.root.child, range(4, 4 + depth))]
            for row, tree in enumerate(trees)
        ]
        sentences = [tree.admit(wanted, len(WORDS), 9) for tree, wanted in zip(trees, nodes, strict=True)]
        block = TreeBlock.of(sentences, max(tree.slots for tree in trees), torch.device("cpu"))
        before = cache_memory(decoder).clone()
        leaves_alone(lambda: list(decoder.score_tree(block)), model, decoder, encoder_out, block)  # noqa: B023
        changed = (cache_memory(decoder)[:, :rows] != before[:, :rows]).flatten(4).any(-1).any(2).any(0)  # B x slots
        assert changed.nonzero().tolist() == sorted(
            [row, node.path[-1]] for row, read in enumerate(sentences) for node in read
        )


@pytest.mark.parametrize("rows", [1, 3])
@torch.no_grad()
def test_drafters_heads_ensembles_and_the_fallback(rows: int) -> None:
    sample = random_batch(2, WORDS, [6 - row for row in range(rows)])["net_input"]
    block, starts = torch.randint(4, 20, (rows, 4)), torch.zeros(rows, dtype=torch.long)
    tokens, lengths = torch.randint(4, 20, (rows, 9)), torch.full((rows,), 3)

    for shape in ("causal, post-norm sinusoidal", "causal, source copy", "bidirectional"):
        model = random_drafter(shape, 1, WORDS, WORDS, 5, transition_dim=8)
        encoder_out = model.encoder(**sample)
        drafter = DraftDecoder(model.decoder)
        drafter.start(encoder_out)
        call = lambda: drafter.draft(texts_of(tokens, lengths), 5)  # noqa: E731, B023
        leaves_alone(call, model, encoder_out, tokens, lengths)

    heads = random_blockwise("post-norm sinusoidal", "learned", 1, WORDS, WORDS, 4)
    proposing = ProposingDecoder(heads.decoder)
    proposing.start(heads.encoder(**sample))
    leaves_alone(lambda: scored(proposing, block, starts), heads, proposing, block, starts)
    leaves_alone(lambda: proposing.proposals(lengths, 4), heads, proposing, lengths)

    models = [random_model(seed, WORDS, WORDS) for seed in (1, 2)]
    encoder_outs = [model.encoder(**sample) for model in models]
    fallback, engine = RecomputeVerifier(models[0], WORDS.pad()), BlockDecoder(models[1].decoder)
    fallback.start(encoder_outs[0], 0.7)
    engine.start(encoder_outs[1], 0.7)
    ensemble = EnsembleVerifier([fallback, engine])
    leaves_alone(lambda: scored(ensemble, block, starts), models, encoder_outs, block, starts)
    leaves_alone(lambda: scored(ensemble, block, starts + 2), models, encoder_outs, block, starts)
    leaves_alone(lambda: ensemble.keep(torch.tensor([rows - 1])), models, encoder_outs)
