"""The self-check of a new engine: it and fairseq's code read the same random sentences, and the results are compared.

fairseq's decoder reads token by token, as in its search, so that any hook, replaced method or part of another class
shows. Training mode, random state and caches of the model are restored.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from fairseq_aggdec.compat.model_locks import with_setting
from fairseq_aggdec.decoding.beam.roles import TreeBlock
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block, Ragged
from fairseq_aggdec.engine.choose_backend import is_asynchronous
from fairseq_aggdec.engine.decoder import Decoder
from fairseq_aggdec.engine.encoder import Encoder

_TOLERANCES = {torch.float16: 0.1, torch.bfloat16: 0.5}
"""largest differences of log-probabilities and encoder states; `aggdec verify` takes smaller gaps for near-ties"""
_DEFAULT_TOLERANCE = 1e-4  # in other types
_TOLERANCE_PER_UNIT = 0.1
"""tolerances per unit of the largest value, for values above 10: rounding grows with them"""
_IMPOSSIBLE = -1000
"""log-probability below which a bias rules a symbol out; it is not compared, and does not raise the tolerance"""
_SOURCE_LENGTHS = (7, 4)
_BLOCK_WIDTHS = (3, 2)
"""widths of the blocks of the test; no block is wider than the first"""


def decoder_objection(engine: Decoder, decoder: Any) -> str | None:
    """The difference between an engine and its decoder, as text; None where they agree.

    Compared are log-probabilities after all tokens, those of chosen and of draft tokens, and the best after a tree's.
    """
    with _undisturbed(decoder):
        weight = decoder.embed_tokens.weight
        width = min(sum(_BLOCK_WIDTHS), int(decoder.max_positions()))
        tokens = _random_tokens(decoder, len(_SOURCE_LENGTHS), width)
        memory = torch.randn(max(_SOURCE_LENGTHS), len(_SOURCE_LENGTHS), decoder.layers[0].encoder_attn.kdim)
        encoder_out: dict[str, Any] = {
            "encoder_out": [memory.to(weight)],
            "encoder_padding_mask": [_left_padding().to(weight.device)],
        }
        encoder_out |= {name: [] for name in ("encoder_embedding", "encoder_states", "src_tokens", "src_lengths")}
        state: dict[str, Any] = {}
        steps = []
        for end in range(1, width + 1):
            read = decoder.forward(tokens[:, :end], encoder_out=encoder_out, incremental_state=state)
            steps.append(decoder.get_normalized_probs((read[0][:, -1:], None), True, None))
        expected = torch.cat(steps, dim=1)
        expected = expected.masked_fill(expected < _IMPOSSIBLE, -torch.inf)
        engine.start(encoder_out)
        logits, start = [], 0
        for part in tokens.split(_BLOCK_WIDTHS[0], dim=1):
            block = Block.of(part, [start] * len(part))
            logits.append(block.ragged.spread(torch.cat(list(engine.score(block)))))
            start += part.size(1)
        found = decoder.get_normalized_probs((torch.cat(logits, dim=1), None), True, None)
        objection = _difference(found, expected, weight, "log-probabilities")
        if objection is not None:
            return objection

        words = decoder.dictionary
        rules = SearchRules(decoder.padding_idx, words.unk(), words.eos(), max_len=width)
        allowed = expected.cpu()
        allowed[..., rules.pad] = allowed[:, : rules.min_len, rules.eos] = -torch.inf
        chosen = engine.verify(Block.of(tokens, [0] * len(tokens)), rules, ranks=1)
        assert chosen.drafted is not None
        drafted = chosen.drafted.view(tokens.shape)[:, :-1]
        pairs = [(drafted, allowed[:, :-1].gather(2, tokens[:, 1:, None].cpu()).squeeze(2))]  # found; the decoder's
        engine.start(encoder_out)
        trees = list(engine.verify_tree(_tree(tokens.cpu()), rules, min(4, allowed.size(-1))))
        found_best = [(chosen.log_probs[:, None], chosen.tokens[:, None])]
        found_best.append((torch.cat([tree.values for tree in trees]), torch.cat([tree.names for tree in trees])))
        for best, own in found_best:
            right = allowed.flatten(0, 1).topk(own.size(1)).values
            pairs += [(best, right), (allowed.flatten(0, 1).gather(1, own), right)]
        ours, right = (torch.cat([part.flatten().double() for part in parts]) for parts in zip(*pairs, strict=True))
        return _difference(ours, right, weight, "log-probabilities of chosen tokens")


def _tree(tokens: Tensor) -> TreeBlock:
    """A tree of the beginnings of each text, B x W; the cache has them from last to first."""
    rows, width = tokens.shape
    depths = torch.arange(width)
    paths = width - 1 - torch.minimum(depths, depths[:, None])
    ragged = Ragged.of([width] * rows, tokens.device)
    return TreeBlock(tokens.flatten(), depths.repeat(rows), 0, width - 1, paths.repeat(rows, 1), width, ragged)


def encoder_objection(engine: Encoder, encoder: Any) -> str | None:
    """The difference between the states of an engine and of its encoder, as text; None where they agree."""
    with _undisturbed(encoder):
        width = min(max(_SOURCE_LENGTHS), int(encoder.max_positions()))
        padding = _left_padding()[:, -width:].to(encoder.embed_tokens.weight.device)
        tokens = _random_tokens(encoder, *padding.shape).masked_fill(padding, encoder.padding_idx)
        lengths = padding.logical_not().sum(dim=1)
        expected = encoder.forward_torchscript({"src_tokens": tokens, "src_lengths": lengths})["encoder_out"][0]
        found = engine(tokens)
        hidden = found["encoder_padding_mask"][0]  # an engine may move padding after the sentence
        states = found["encoder_out"][0].transpose(0, 1)[~hidden]
        return _difference(states, expected.transpose(0, 1)[~padding], encoder.embed_tokens.weight, "encoder states")


def _difference(found: Tensor, expected: Tensor, weight: Tensor, name: str) -> str | None:
    """The largest difference where it is above the tolerance, as text; only finite `expected` values are compared."""
    finite = expected.isfinite()
    if not finite.any():
        return None
    expected, found = expected[finite].double(), found[finite].double()
    tolerance = _TOLERANCES.get(weight.dtype, _DEFAULT_TOLERANCE)
    if is_asynchronous(weight.device) and torch.backends.cuda.matmul.allow_tf32:
        tolerance = max(tolerance, _TOLERANCES[torch.float16])
    tolerance *= max(1.0, _TOLERANCE_PER_UNIT * float(expected.abs().max()))
    apart = float((found - expected).abs().max())
    return None if apart <= tolerance else f"{name} that differ by {apart:.2g} from fairseq's own"


def _random_tokens(stack: Any, rows: int, width: int) -> Tensor:
    """Random tokens, rows x width, without padding and without symbols of NaN or infinite embeddings."""
    weight = stack.embed_tokens.weight
    tokens = torch.randint(weight.size(0), (rows, width)).to(weight.device)
    usable = weight[tokens].isfinite().all(dim=-1) & tokens.ne(stack.padding_idx)
    return torch.where(usable, tokens, (stack.padding_idx + 1) % weight.size(0))


def _left_padding() -> Tensor:
    """B x S, True before each source."""
    longest = max(_SOURCE_LENGTHS)
    return torch.arange(longest) < longest - torch.tensor(_SOURCE_LENGTHS)[:, None]


@contextmanager
def _undisturbed(module: nn.Module) -> Iterator[None]:
    """Run fairseq's code in evaluation mode with a fixed random seed; restore modes and random state afterwards."""
    device = next(module.parameters()).device
    own_random_state = torch.random.fork_rng([device] if is_asynchronous(device) else [])
    with torch.no_grad(), own_random_state, with_setting(module.modules(), "training", False):
        torch.manual_seed(1)
        yield
