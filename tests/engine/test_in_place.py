"""What the engine writes in place is its own: nothing that a caller, a later block or another row still uses."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fairseq_aggdec.decoding.roles import Block
from fairseq_aggdec.engine.arithmetic.precision import Arithmetic
from fairseq_aggdec.engine.block_decoder import BlockDecoder
from fairseq_aggdec.engine.block_encoder import BlockEncoder
from fairseq_aggdec.engine.layers import KVCache
from tests.random_models import dictionary, random_batch, random_model

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
