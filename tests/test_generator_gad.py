"""GAD and GAD++ over random verifiers and random, untrained drafters."""

import functools
import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fairseq_aggdec.decoding.verification import Acceptance, TopBeta
from fairseq_aggdec.engine.engines import LoadedDrafter
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.generation.generator import AggressiveGenerator
from fairseq_aggdec.generation.modes import DRAFTS
from fairseq_aggdec.models.nar_drafter import NarDrafterModel
from fairseq_aggdec.scheduling import costs
from tests.random_drafters import DRAFTER_SHAPES, random_drafter
from tests.random_models import ALL_SHAPES, ENGINE_SHAPES, FALLBACK_SHAPES, random_batch, stock_beam_one
from tests.scripted_decoding import examples
from tests.test_generator import (
    JOINED,
    OTHER,
    Hypothesis,
    Models,
    OracleGenerator,
    assert_same_up_to_near_ties,
    batch_lengths,
    cached_model,
    decode,
    option_values,
    seeds,
)

TRAINED = 30  # block size of the drafters here


@functools.lru_cache(maxsize=100)
def cached_drafter(shape: str, seed: int, separate: bool = False, positions: int = 64) -> NarDrafterModel:
    source = OTHER if separate else JOINED
    return random_drafter(shape, seed, source, JOINED, TRAINED, max_target_positions=positions)


def gad(models: Models, drafter: NarDrafterModel, block_size: int = 5, **options: Any) -> AggressiveGenerator:
    options = {"src_dict": JOINED, "decoding": "gad", **options}
    loaded = LoadedDrafter(drafter)
    block_draft = BlockDraftOptions(loaded, loaded.block_size(block_size))
    return AggressiveGenerator.of(models, JOINED, block_draft=block_draft, **options)


@examples(12)
@given(
    st.one_of(st.just({}), option_values), st.sampled_from(ALL_SHAPES), st.sampled_from(list(DRAFTER_SHAPES)), seeds,
    st.one_of(st.sampled_from([1, 2, 30]), st.integers(1, TRAINED)), st.booleans(), st.sampled_from([1, 16]), st.data(),
)  # fmt: skip
def test_gad_gives_what_beam_one_gives(
    options: dict[str, Any], shape: str, drafter_shape: str, seed: int, block_size: int, left_pad: bool, rows: int,
    data: st.DataObject,
) -> None:  # fmt: skip
    """In batches of one and of sixteen, with any block size and search options."""
    lengths = data.draw(st.lists(st.sampled_from([0, 1, 2, 5, 9, 20, 40]), min_size=rows, max_size=rows))
    models, sample = [cached_model(shape, seed)], random_batch(seed, JOINED, lengths, left_pad)
    generator = gad(models, cached_drafter(drafter_shape, seed), block_size, **options)
    found = decode(generator, models, sample)
    stock = stock_beam_one(models, JOINED, sample, **options)
    assert_same_up_to_near_ties(found, stock, models, sample, **options)
    assert generator.totals.committed == sum(hypothesis["tokens"].numel() for hypothesis in found)
    assert all(size <= block_size for hypothesis in found for size in hypothesis["stats"].drafted)


def allowed_log_probs(
    models: Models, net_input: dict[str, Tensor], row: int, output: list[int], rules: dict[str, Any]
) -> Tensor:
    """The models' log-probabilities along an output under the search options, L x V, from one full forward pass."""
    read = torch.tensor([[JOINED.eos(), *output[:-1]]])
    source = {name: value[row : row + 1] for name, value in net_input.items()}
    members = []
    with torch.no_grad():
        for model in models:
            logits, extra = model.decoder(read, encoder_out=model.encoder(**source))[:2]
            logits = logits / rules["temperature"]
            members.append(model.get_normalized_probs((logits, extra), log_probs=True)[0])
    log_probs = torch.stack(members).logsumexp(0) - math.log(len(members))
    log_probs[:, JOINED.pad()] = -math.inf
    log_probs[:, JOINED.unk()] -= rules["unk_penalty"]
    log_probs[: rules["min_len"], JOINED.eos()] = -math.inf
    return log_probs


def check_by_equations(log_probs: Tensor, hypothesis: Hypothesis, beta: int, tolerance: float, max_len: int) -> int:
    """Every drafted token up to the first rejected one, and every token of the verifier's own.

    Returns:
        how many accepted tokens are not the verifier's best.
    """
    tokens, stats = hypothesis["tokens"].tolist(), hypothesis["stats"]
    loosely, begin, near = 0, 0, 1e-4
    for draft, accepted, committed in zip(hypothesis["history"], stats.accepted, stats.committed, strict=True):
        for number in range(committed):
            drafted = draft["tokens"].tolist()[number] if number < len(draft["tokens"]) else None
            here = log_probs[begin + number]
            best, own = float(here.max()), int(here.argmax())
            token = tokens[begin + number]
            if number < accepted:
                score = float(here[token])
                assert token == drafted
                assert score >= float(here.sort(descending=True).values[beta - 1]) - near  # Equation 8
                assert best - score <= tolerance + near  # Equation 9
                loosely += token != own
            else:
                assert number == accepted
                if begin + number < max_len:
                    assert best - float(here[token]) <= near, "the verifier's own token is its best"
                if drafted is not None:
                    score = float(here[drafted])
                    in_beta = score > float(here.sort(descending=True).values[beta - 1]) + near
                    assert not (in_beta and best - score < tolerance - near), "a good draft was rejected"
        begin += committed
    assert begin == len(tokens)
    expected = log_probs.gather(1, hypothesis["tokens"][:, None]).squeeze(1)
    torch.testing.assert_close(hypothesis["positional_scores"], expected, atol=1e-4, rtol=1e-4)
    return loosely


loose = st.tuples(st.sampled_from([2, 3, 5, 16]), st.sampled_from([0.3, 1.0, 3.0, 6.0]))
rules_of_search = st.fixed_dictionaries(
    {
        "temperature": st.sampled_from([1.0, 1.0, 1.7]),
        "unk_penalty": st.sampled_from([0.0, 0.0, 1.5]),
        "min_len": st.sampled_from([1, 1, 4]),
        "max_len_b": st.sampled_from([40, 20, 9]),
    }
)


def accepted_loosely(
    models: Models, seed: int, sample: dict[str, Any], setting: tuple[int, float], rules: dict[str, Any]
) -> int:
    """Decodes and checks a batch; returns the number of accepted tokens that greedy decoding would not have chosen."""
    answers = [hypothesis["tokens"].tolist() for hypothesis in stock_beam_one(models, JOINED, sample, **rules)]
    block_draft = BlockDraftOptions(LoadedDrafter(cached_drafter("bidirectional", 0)), 9)
    options = {"src_dict": JOINED, "block_draft": block_draft, "accept": Acceptance(TopBeta(*setting)), **rules}
    generator = OracleGenerator.of(models, JOINED, decoding="gad++", answers=answers, seed=seed, **options)
    max_len = min(rules["max_len_b"], *(model.max_decoder_positions() - 1 for model in models))
    loosely = 0
    for row, hypothesis in enumerate(decode(generator, models, sample)):
        log_probs = allowed_log_probs(models, sample["net_input"], row, hypothesis["tokens"].tolist(), rules)
        loosely += check_by_equations(log_probs, hypothesis, *setting, max_len)
    return loosely


@examples(9)
@given(st.sampled_from([*ENGINE_SHAPES, *FALLBACK_SHAPES]), seeds, batch_lengths, loose, rules_of_search)
def test_gad_plus_plus_accepts_by_the_equations(
    shape: str, seed: int, lengths: list[int], setting: tuple[int, float], rules: dict[str, Any]
) -> None:
    accepted_loosely([cached_model(shape, seed)], seed, random_batch(seed, JOINED, lengths), setting, rules)


def test_gad_plus_plus_leaves_the_path_of_greedy_decoding() -> None:
    """Otherwise the test above would check little."""
    rules = {"temperature": 1.0, "unk_penalty": 0.0, "min_len": 1, "max_len_b": 40}
    models = [cached_model(shape, 2) for shape in ENGINE_SHAPES[:2]]
    assert accepted_loosely(models, 3, random_batch(1, JOINED, [5, 9, 2, 7]), (5, 3.0), rules) >= 5


@pytest.mark.parametrize("fits_into_caches", [True, False])
def test_one_sentence_of_a_model_beyond_the_caches_gets_only_drafts_that_pay(
    fits_into_caches: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs, "_WEIGHTS_IN_CACHE", 1e9 if fits_into_caches else 0)
    models, sample = [cached_model("post-norm sinusoidal", 1)], random_batch(1, JOINED, [9])
    drafter = cached_drafter("causal, source copy", 1)  # untrained: hardly anything of its drafts passes
    found, whole = (decode(gad(models, drafter, max_len_b=20, drafts=how), models, sample) for how in DRAFTS)
    assert_same_up_to_near_ties(found, whole, models, sample, max_len_b=20)
    drafts = [[[one["tokens"].tolist() for one in h["history"]] for h in outputs] for outputs in (found, whole)]
    assert (drafts[0] == drafts[1]) == fits_into_caches
