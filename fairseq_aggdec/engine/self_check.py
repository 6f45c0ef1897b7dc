"""The self-check of a new engine: it and fairseq's code read the same random sentences, and the results are compared.

fairseq's decoder reads token by token, as in its search, so that any hook, replaced method or part of another class
shows. Training mode, random state and caches of the model are restored.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn

from fairseq_aggdec.compat.model_locks import with_setting
from fairseq_aggdec.decoding.beam.roles import TreeBlock
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block, Ragged
from fairseq_aggdec.engine.choose_backend import runs_async
from fairseq_aggdec.engine.decoder import Decoder
from fairseq_aggdec.engine.encoder import Encoder

_TOLERANCES = {torch.float16: 0.1, torch.bfloat16: 0.5}
"""largest differences of log-probabilities and encoder states; `aggdec verify` takes smaller gaps for near-ties"""
_DEFAULT_TOLERANCE = 1e-4  # in other types
_TOLERANCE_PER_UNIT = 0.1
"""tolerances per unit of the largest value, for values above 10: rounding grows with them"""
_IMPOSSIBLE = -1000
"""log-probability below which a bias rules a symbol out; it is not compared, and does not raise the tolerance"""
_PADDING = torch.arange(7) < torch.tensor([[0], [3]])
"""of two sources, B x S, the second of them shorter"""
_WIDTH = 5
_BLOCK_WIDTH = 3
"""tokens of a text, and of its first block"""
_BRANCHES = 4
"""how many of the best tokens are compared after each of a tree's"""
_Pair = tuple[Tensor, Tensor]
"""values found by an engine, and expected"""


def decoder_objection(engine: Decoder, decoder: Any) -> str | None:
    """The difference between an engine and its decoder, as text; None where they agree."""
    with _undisturbed(decoder):
        width = min(_WIDTH, int(decoder.max_positions()))
        tokens = _random_tokens(decoder, width)
        tokens[:, 0] = decoder.dictionary.eos()  # as texts begin
        encoder_out = _random_encoder_out(decoder)
        expected = _log_probs_of_fairseq(decoder, tokens, encoder_out)
        weight = decoder.embed_tokens.weight
        engine.start(encoder_out)
        found = _log_probs_of_engine(engine, tokens)
        objection = _objection([(found, expected)], weight, "log-probabilities")
        if objection is not None:
            return objection
        expected = expected.cpu()
        symbols = decoder.dictionary
        pairs = _choices(engine, symbols, tokens, encoder_out, expected)
        return _objection(pairs, weight, "log-probabilities of chosen tokens")


def _random_encoder_out(decoder: Any) -> dict[str, list[Tensor]]:
    """What a decoder reads of an encoder's output: random states, S x B x C, and the padding."""
    weight = decoder.embed_tokens.weight
    rows, width = _PADDING.shape
    channels = decoder.layers[0].encoder_attn.kdim
    states = torch.randn(width, rows, channels)
    return {
        "encoder_out": [states.to(weight)],
        "encoder_padding_mask": [_PADDING.to(weight.device)],
    }


def _log_probs_of_fairseq(
    decoder: Any,
    tokens: Tensor,
    encoder_out: dict[str, Any],
) -> Tensor:
    """B x W x V, after each token; minus infinity where a bias rules a symbol out."""
    state: dict[str, Any] = {}
    steps = []
    for end in range(1, tokens.size(1) + 1):
        logits, *_ = decoder.forward(
            tokens[:, :end],
            encoder_out=encoder_out,
            incremental_state=state,
        )
        steps.append(logits[:, -1:])
    logits = torch.cat(steps, dim=1)
    expected = decoder.get_normalized_probs((logits, None), True, None)
    return expected.masked_fill(expected < _IMPOSSIBLE, -torch.inf)


def _log_probs_of_engine(engine: Decoder, tokens: Tensor) -> Tensor:
    """B x W x V, after each token, read in two blocks."""
    blocks = []
    start = 0
    for part in tokens.split(_BLOCK_WIDTH, dim=1):
        block = Block.of(part, [start] * len(part))
        (logits,) = engine.score(block)
        blocks.append(logits.view(*part.shape, -1))
        start = _BLOCK_WIDTH
    logits = torch.cat(blocks, dim=1)
    return logits.log_softmax(dim=-1, dtype=torch.float32)


def _choices(
    engine: Decoder,
    symbols: Dictionary,
    tokens: Tensor,
    encoder_out: dict[str, Any],
    log_probs: Tensor,
) -> list[_Pair]:
    """Log-probabilities of what the engine chooses after the tokens, B x W, and what they should be.

    `log_probs`: fairseq's after each token, B x W x V, on the host; those of banned tokens are overwritten.
    """
    eos = symbols.eos()
    rules = SearchRules(symbols.pad(), symbols.unk(), eos, max_len=_WIDTH)
    log_probs[..., rules.pad] = -torch.inf
    log_probs[:, : rules.min_len, eos] = -torch.inf

    # the tokens as drafts
    block = Block.of(tokens, [0] * len(tokens))
    chosen = engine.verify(block, rules, ranks=1)
    assert chosen.drafted is not None
    drafted = chosen.drafted.view(tokens.shape)[:, :-1]
    tokens = tokens.cpu()
    following = tokens[:, 1:, None]
    drafts = log_probs[:, :-1].gather(2, following).squeeze(2)

    # the best token after each, and the best few of a tree: the engine's values, and fairseq's of the same tokens
    engine.start(encoder_out)
    (entries,) = engine.verify_tree(_tree(tokens), rules, _BRANCHES)
    log_probs = log_probs.flatten(0, 1)
    best = log_probs.topk(_BRANCHES).values
    chosen_tokens = chosen.tokens.unsqueeze(1)
    return [
        (drafted, drafts),
        (chosen.log_probs, best[:, 0]),
        (log_probs.gather(1, chosen_tokens), best[:, :1]),
        (entries.values, best),
        (log_probs.gather(1, entries.names), best),
    ]


def _tree(tokens: Tensor) -> TreeBlock:
    """A tree of the beginnings of each text, B x W; the cache has them from last to first."""
    rows, width = tokens.shape
    depths = torch.arange(width)
    paths = width - 1 - torch.minimum(depths, depths[:, None])
    return TreeBlock(
        tokens.flatten(),
        positions=depths.repeat(rows),
        first_position=0,
        last_position=width - 1,
        paths=paths.repeat(rows, 1),
        end=width,
        ragged=Ragged.of([width] * rows, tokens.device),
    )


def encoder_objection(engine: Encoder, encoder: Any) -> str | None:
    """The difference between the states of an engine and of its encoder, as text; None where they agree."""
    with _undisturbed(encoder):
        # sources with padding on the left
        weight = encoder.embed_tokens.weight
        longest = int(encoder.max_positions())
        padding = _PADDING[:, -longest:].to(weight.device)
        tokens = _random_tokens(encoder, padding.size(1))
        tokens = tokens.masked_fill(padding, encoder.padding_idx)

        # the states of their tokens, N x C; an engine may move padding after the sentence
        encoded = encoder.forward_torchscript({"src_tokens": tokens})
        states = encoded["encoder_out"][0].transpose(0, 1)
        expected = states[~padding]
        encoded = engine(tokens)
        states = encoded["encoder_out"][0].transpose(0, 1)
        hidden = encoded["encoder_padding_mask"][0]
        found = states[~hidden]
        return _objection([(found, expected)], weight, "encoder states")


def _tolerance(expected: Tensor, weight: Tensor) -> float:
    """The largest difference that rounding explains, for results of a model with such a weight."""
    tolerance = _TOLERANCES.get(weight.dtype, _DEFAULT_TOLERANCE)
    if runs_async(weight.device) and torch.backends.cuda.matmul.allow_tf32:
        tolerance = max(tolerance, _TOLERANCES[torch.float16])
    largest = expected.nan_to_num(0, 0, 0).abs().max()
    return tolerance * max(1.0, _TOLERANCE_PER_UNIT * float(largest))


def _objection(
    pairs: list[_Pair],
    weight: Tensor,
    name: str,
) -> str | None:
    """The first difference that rounding does not explain, as text; only finite expected values are compared."""
    every = torch.cat([expected.flatten() for _, expected in pairs])
    tolerance = _tolerance(every, weight)
    for found, expected in pairs:
        is_finite = expected.isfinite()
        apart = (found.double() - expected.double())[is_finite].abs()
        if not (apart <= tolerance).all():
            largest = float(apart.max())
            return f"{name} that differ by {largest:.2g} from fairseq's own"
    return None


def _random_tokens(stack: Any, width: int) -> Tensor:
    """Random tokens, B x width, without padding and without symbols of NaN or infinite embeddings."""
    weight = stack.embed_tokens.weight
    symbols = len(weight)
    shape = len(_PADDING), width
    tokens = torch.randint(symbols, shape).to(weight.device)
    is_finite = weight[tokens].isfinite().all(dim=-1)
    usable = is_finite & tokens.ne(stack.padding_idx)
    other = (stack.padding_idx + 1) % symbols
    return torch.where(usable, tokens, other)


@contextmanager
def _undisturbed(module: nn.Module) -> Iterator[None]:
    """Run fairseq's code in evaluation mode with a fixed random seed; restore modes and random state afterwards.

    An encoder's attention calls its projections, as a decoder's does token by token: PyTorch's function for whole
    sentences imports sympy to check a mask's shape, which takes as long as torch itself.
    """
    evaluating = with_setting(module.modules(), "training", False)
    attentions = [
        part for part in module.modules() if isinstance(part, MultiheadAttention)
    ]
    with (
        torch.no_grad(),
        torch.random.fork_rng([]),
        evaluating,
        with_setting(attentions, "skip_embed_dim_check", True),
    ):
        # all that is random here is drawn on the host
        torch.default_generator.manual_seed(1)
        yield
