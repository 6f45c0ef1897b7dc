"""GAD and GAD++ over random verifiers and random, untrained drafters."""

import copy
import functools
import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fairseq_aggdec.decoding.roles import Drafter
from fairseq_aggdec.decoding.verification import Acceptance, TopBeta
from fairseq_aggdec.engine.arithmetic import precision
from fairseq_aggdec.engine.engines import LoadedDrafter
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.generation.generator import AggressiveGenerator
from fairseq_aggdec.generation.modes import DRAFTS
from fairseq_aggdec.models.nar_drafter import NarDrafterModel
from fairseq_aggdec.scheduling import costs
from tests.random_drafters import DRAFTER_SHAPES, draft_logits, random_drafter
from tests.random_models import ALL_SHAPES, ENGINE_SHAPES, FALLBACK_SHAPES, random_batch, share_encoder, stock_beam_one
from tests.scripted_decoding import OracleDrafter, examples
from tests.test_generator import (
    JOINED,
    OTHER,
    Hypothesis,
    Models,
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


def check_counters(generator: AggressiveGenerator, found: list[Hypothesis], block_size: int) -> None:
    totals = generator.totals
    assert totals.committed == sum(hypothesis["tokens"].numel() for hypothesis in found)
    assert totals.iterations == sum(hypothesis["steps"] for hypothesis in found) <= totals.committed
    for hypothesis in found:
        drafts = [draft["tokens"].tolist() for draft in hypothesis["history"]]
        assert [len(draft) for draft in drafts] == hypothesis["stats"].drafted
        for draft in drafts:
            assert len(draft) <= block_size
            assert not {JOINED.pad(), JOINED.bos()} & set(draft)
            assert JOINED.eos() not in draft[:-1]


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
    check_counters(generator, found, block_size)


@examples(4)
@given(st.lists(st.sampled_from(ALL_SHAPES), min_size=2, max_size=3), seeds, batch_lengths)
def test_gad_with_an_ensemble_and_separate_dictionaries(shapes: list[str], seed: int, lengths: list[int]) -> None:
    models = [cached_model(shape, seed + number, separate=True) for number, shape in enumerate(shapes)]
    sample = random_batch(seed, OTHER, lengths)
    drafter = cached_drafter("causal, source copy", seed, separate=True)
    found = decode(gad(models, drafter, src_dict=OTHER), models, sample)
    assert_same_up_to_near_ties(found, stock_beam_one(models, JOINED, sample), models, sample)


@pytest.mark.parametrize("shape", ["causal, post-norm learned", "bidirectional"])
def test_a_drafter_with_fewer_positions_than_the_verifier(shape: str) -> None:
    """Behind its last position it drafts nothing."""
    models, sample = [cached_model("post-norm learned", 0)], random_batch(0, JOINED, [5, 40, 1])
    found = decode(gad(models, cached_drafter(shape, 0, positions=9), 4, min_len=20), models, sample)
    stock = stock_beam_one(models, JOINED, sample, min_len=20)
    assert max(hypothesis["tokens"].numel() for hypothesis in stock) > 12
    assert_same_up_to_near_ties(found, stock, models, sample)
    for hypothesis in found:
        stats, done = hypothesis["stats"], 1
        for drafted, committed in zip(stats.drafted, stats.committed, strict=True):
            assert done + drafted <= max(9, done)
            done += committed


class OracleGenerator(AggressiveGenerator):
    """Drafts a known answer with random errors, which often are the verifier's second best tokens."""

    def __init__(self, *args: Any, answers: list[list[int]], seed: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.answers, self.seed = answers, seed

    def make_drafter(self, *_: Any) -> Drafter:
        return OracleDrafter(self.answers, self.vocab_size, self.seed, longest=9)


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


def gad_plus_plus(
    models: Models,
    seed: int,
    sample: dict[str, Any],
    setting: tuple[int, float],
    rules: dict[str, Any],
    oracle: bool,
) -> int:
    """Decodes and checks a batch; returns the number of accepted tokens that greedy decoding would not have chosen."""
    beta, tolerance = setting
    accept = Acceptance(TopBeta(beta, tolerance))
    options = {"src_dict": JOINED, "decoding": "gad++", "accept": accept, **rules}
    if oracle:
        stock = stock_beam_one(models, JOINED, sample, **rules)
        answers = [hypothesis["tokens"].tolist() for hypothesis in stock]
        block_draft = BlockDraftOptions(LoadedDrafter(cached_drafter("bidirectional", 0)), 9)
        settings = {**options, "block_draft": block_draft}
        generator: AggressiveGenerator = OracleGenerator.of(models, JOINED, answers=answers, seed=seed, **settings)
    else:
        generator = gad(models, cached_drafter("causal, source copy", seed), 9, **options)
    max_len = min(rules["max_len_b"], *(model.max_decoder_positions() - 1 for model in models))
    loosely = 0
    for row, hypothesis in enumerate(decode(generator, models, sample)):
        log_probs = allowed_log_probs(models, sample["net_input"], row, hypothesis["tokens"].tolist(), rules)
        loosely += check_by_equations(log_probs, hypothesis, beta, tolerance, max_len)
    return loosely


@examples(9)
@given(st.sampled_from([*ENGINE_SHAPES, *FALLBACK_SHAPES]), seeds, batch_lengths, loose, rules_of_search, st.booleans())
def test_gad_plus_plus_accepts_by_the_equations(
    shape: str, seed: int, lengths: list[int], setting: tuple[int, float], rules: dict[str, Any], oracle: bool
) -> None:
    gad_plus_plus([cached_model(shape, seed)], seed, random_batch(seed, JOINED, lengths), setting, rules, oracle)


def test_gad_plus_plus_leaves_the_path_of_greedy_decoding() -> None:
    """Otherwise the test above would check little."""
    rules = {"temperature": 1.0, "unk_penalty": 0.0, "min_len": 1, "max_len_b": 40}
    sample = random_batch(1, JOINED, [5, 9, 2, 7])
    models = [cached_model(shape, 2) for shape in ENGINE_SHAPES[:2]]
    assert gad_plus_plus(models, 3, sample, (5, 3.0), rules, oracle=True) >= 5


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", ["post-norm sinusoidal", "shared output projection"])
def test_the_encoder_is_shared_where_it_is_the_same(
    shape: str, dtype: torch.dtype, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr(precision, "kernels", lambda: None)  # in int8 the drafter's own encoder rounds otherwise
    models = [copy.deepcopy(cached_model(shape, seed)) for seed in (1, 2)]
    drafter = random_drafter("causal, source copy", 5, JOINED, JOINED, TRAINED)
    sample = random_batch(1, JOINED, [5, 9, 2])
    share_encoder(drafter, models[1])
    for model in models:  # the fingerprint is of the weights before
        model.to(dtype)
    recorded = drafter.encoder_fingerprint.clone()
    drafter.encoder_fingerprint.zero_()
    encoded = decode(gad(models, drafter, drafts="whole"), models, sample)
    assert "encodes the source itself" in caplog.text

    drafter.encoder_fingerprint.copy_(recorded)
    monkeypatch.delattr(LoadedDrafter, "_encode")
    generator = gad(models, drafter, drafts="whole")
    shared = [decode(generator, models, sample) for _ in range(2)]
    assert caplog.text.count("shares the verifier's encoder") == 1
    assert same_drafts(shared[0], encoded)
    assert same_drafts(shared[1], encoded)


def same_drafts(mine: list[Hypothesis], others: list[Hypothesis]) -> bool:
    drafts = [[[draft["tokens"].tolist() for draft in h["history"]] for h in found] for found in (mine, others)]
    return drafts[0] == drafts[1]


@examples(4)
@given(st.sampled_from(list(DRAFTER_SHAPES)), seeds, st.integers(1, 12), st.integers(1, 9))
def test_drafts_do_not_depend_on_padding(shape: str, seed: int, length: int, longer: int) -> None:
    """A sentence alone, and with padding on either side next to a longer one."""
    models, drafter = [cached_model("post-norm sinusoidal", seed)], cached_drafter(shape, seed)
    alone = random_batch(seed, JOINED, [length])
    words = alone["net_input"]["src_tokens"]
    results = [decode(gad(models, drafter, max_len_b=20, drafts="whole"), models, alone)]
    for left_pad in (True, False):
        sample = random_batch(seed, JOINED, [length, length + longer], left_pad)
        begin = longer if left_pad else 0
        sample["net_input"]["src_tokens"][0, begin : begin + length + 1] = words[0]
        results.append(decode(gad(models, drafter, max_len_b=20, drafts="whole"), models, sample)[:1])
    for padded in results[1:]:
        assert same_drafts(padded, results[0])


@pytest.mark.parametrize("fits_into_caches", [True, False])
def test_one_sentence_of_a_model_beyond_the_caches_gets_only_drafts_that_pay(
    fits_into_caches: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs, "_CACHED", 1e9 if fits_into_caches else 0)
    models, sample = [cached_model("post-norm sinusoidal", 1)], random_batch(1, JOINED, [9])
    drafter = cached_drafter("causal, source copy", 1)  # untrained: hardly anything of its drafts passes
    found, whole = (decode(gad(models, drafter, max_len_b=20, drafts=how), models, sample) for how in DRAFTS)
    assert_same_up_to_near_ties(found, whole, models, sample, max_len_b=20)
    assert same_drafts(found, whole) == fits_into_caches


@examples(4)
@given(st.sampled_from(list(DRAFTER_SHAPES)), seeds, st.integers(1, 9), batch_lengths)
def test_a_drafter_alone(shape: str, seed: int, block_size: int, lengths: list[int]) -> None:
    """Block after block, each what the drafter's own forward pass prefers after the blocks before it."""
    drafter, sample = cached_drafter(shape, seed), random_batch(seed, JOINED, lengths)
    generator = gad([drafter], drafter, block_size, decoding="nar", max_len_b=20)
    found = decode(generator, [drafter], sample)
    stock = copy.deepcopy(drafter)
    stock.block_size = stock.decoder.block_size = block_size
    for row, hypothesis in enumerate(found):
        source = {name: value[row : row + 1] for name, value in sample["net_input"].items()}
        output: list[int] = []
        while JOINED.eos() not in output and len(output) <= 20:
            read = torch.tensor([[JOINED.eos(), *output]])
            with torch.no_grad():
                logits = draft_logits(stock, **source, prefix_tokens=read, prefix_lengths=torch.tensor([len(output)]))
            if not output:
                logits[0, 0, JOINED.eos()] = -math.inf  # fairseq's default of --min-len is 1
            output += stock.decoder.best_tokens(logits)[0].tolist()
        end = min([*output, JOINED.eos()].index(JOINED.eos()), 20)
        assert hypothesis["tokens"].tolist() == [*output[:end], JOINED.eos()]
        assert hypothesis["steps"] == -(-(end + 1) // block_size)
