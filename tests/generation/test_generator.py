"""The generator against fairseq's own beam of one, where tests/fuzzing does not look; and what it refuses."""

import functools
import math
from typing import Any

import pytest
import torch
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.search import LengthConstrainedBeamSearch
from torch import Tensor

from fairseq_aggdec.decoding.roles import Drafter
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.generator import AggressiveGenerator
from tests.support.random_models import (
    ENGINE_SHAPES,
    dictionary,
    mended_ngram_blocker,
    model_of_shape,
    random_batch,
    stock_beam_one,
    twin_words,
)
from tests.support.scripted_decoding import OracleDrafter

Hypothesis = dict[str, Any]
Models = list[FairseqEncoderDecoderModel]

JOINED = dictionary(12)


class OracleGenerator(AggressiveGenerator):
    """Drafts what stock fairseq answered, with random errors: random models accept few copies of their source."""

    def __init__(self, *args: Any, answers: list[list[int]], seed: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.answers, self.seed = answers, seed

    @classmethod
    def of(cls, *args: Any, decoding: str = "iad", **options: Any) -> "OracleGenerator":
        return super().of(*args, decoding=decoding, **options)

    def make_drafter(self, *_: Any) -> Drafter:
        return OracleDrafter(self.answers, self.vocab_size, self.seed, longest=1 + self.seed % 15)


@functools.lru_cache(maxsize=200)
def cached_model(shape: str, seed: int) -> FairseqEncoderDecoderModel:
    eos_share = (0.1, 0.05, 0.2, 0.02)[seed % 4]
    positions = 24 if seed % 3 == 1 else 64
    return model_of_shape(shape, seed, JOINED, JOINED, eos_share, max_target_positions=positions)


def stock_log_probs(models: Models, sample: dict[str, Any], row: int, output: list[int], temperature: float) -> Tensor:
    """What the models say after `output`, V, from a full forward pass."""
    read = torch.tensor([[JOINED.eos(), *output]])
    net_input = sample["net_input"]
    source = {name: value[row : row + 1] for name, value in net_input.items()}
    found = []
    with torch.no_grad():
        for model in models:
            logits, extra = model.decoder(read, encoder_out=model.encoder(**source))[:2]
            found.append(model.get_normalized_probs((logits[:, -1:] / temperature, extra), log_probs=True)[0, -1])
    return torch.stack(found).logsumexp(0) - math.log(len(found))


def assert_same_up_to_near_ties(
    ours: list[Hypothesis], stock: list[Hypothesis], models: Models, sample: dict[str, Any], tie: float = 1e-5,
    **options: Any,
) -> None:  # fmt: skip
    """Tokens equal and scores within 1e-4, but for sentences where two tokens are within `tie` of each other.

    fairseq adds up scores before it compares, and blocks round otherwise than single tokens: at such a tie, and behind
    it, outputs may differ. The failure shows both candidates with their log-probabilities.
    """
    assert len(ours) == len(stock)
    for row, (mine, reference) in enumerate(zip(ours, stock, strict=True)):
        tokens, expected = mine["tokens"].tolist(), reference["tokens"].tolist()
        if tokens == expected:
            torch.testing.assert_close(mine["score"], reference["score"].to(mine["score"]), atol=1e-4, rtol=1e-4)
            torch.testing.assert_close(
                mine["positional_scores"],
                reference["positional_scores"].to(mine["positional_scores"]),
                atol=max(1e-4, 10 * tie),
                rtol=1e-4,
            )
            continue
        first = next(i for i, pair in enumerate(zip(tokens, expected, strict=False)) if pair[0] != pair[1])
        log_probs = stock_log_probs(models, sample, row, tokens[:first], options.get("temperature", 1.0))
        log_probs[JOINED.unk()] -= options.get("unk_penalty", 0.0)
        a, b = float(log_probs[tokens[first]]), float(log_probs[expected[first]])
        assert abs(a - b) <= tie, (
            f"row {row}, token {first}: {tokens[first]} with {a:.7f}, fairseq {expected[first]} with {b:.7f}\n"
            f"ours    {tokens}\nfairseq {expected}"
        )


def decode(
    generator: AggressiveGenerator, models: Models, sample: dict[str, Any], prefix_tokens: Tensor | None = None
) -> list[Hypothesis]:
    hypotheses = generator.generate(models, sample, prefix_tokens=prefix_tokens)
    assert all(len(of_sentence) == 1 for of_sentence in hypotheses)
    return [of_sentence[0] for of_sentence in hypotheses]


def check_all_modes(
    models: Models,
    sample: dict[str, Any],
    seed: int,
    ours: dict[str, Any] | None = None,
    **options: Any,
) -> list[Hypothesis]:
    """`greedy`, `iad` and corrupted oracle drafts give what stock fairseq gives; returns that."""
    stock = stock_beam_one(models, JOINED, sample, **options)
    settings = {"src_dict": JOINED, **options, **(ours or {})}
    answers = [hypothesis["tokens"].tolist() for hypothesis in stock]
    for generator in (
        AggressiveGenerator.of(models, JOINED, decoding="greedy", **settings),
        AggressiveGenerator.of(models, JOINED, decoding="iad", **settings),
        OracleGenerator.of(models, JOINED, answers=answers, seed=seed, **settings),
    ):
        found = decode(generator, models, sample)
        assert_same_up_to_near_ties(found, stock, models, sample, **options)
        totals = generator.totals
        assert totals.sentences == len(found)
        assert totals.committed == sum(hypothesis["tokens"].numel() for hypothesis in found)
        assert totals.iterations == sum(hypothesis["steps"] for hypothesis in found) <= totals.committed
        assert totals.drafted == sum(len(draft["tokens"]) for hyp in found for draft in hyp["history"])
    return stock


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("shape", ENGINE_SHAPES[:4])
def test_blocked_ngrams(shape: str, size: int) -> None:
    """--block-ngrams bans what fairseq's blocker bans once it is shown the output without the padding behind it."""
    with mended_ngram_blocker():
        models, sample = [cached_model(shape, size)], random_batch(size, JOINED, [0, 5, 20, 1, 9])
        stock = check_all_modes(models, sample, size, ours={"block_ngrams": True}, no_repeat_ngram_size=size)
    for hypothesis in stock:
        tokens = hypothesis["tokens"].tolist()
        ngrams = [tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)]
        assert len(set(ngrams)) == len(ngrams)


def test_ineffective_ngram_option_is_said(caplog: pytest.LogCaptureFixture) -> None:
    model = cached_model(ENGINE_SHAPES[0], 0)
    generator = AggressiveGenerator.of([model], JOINED, src_dict=JOINED, decoding="iad", no_repeat_ngram_size=2)
    assert generator.no_repeat_ngram_size == 0
    assert "--block-ngrams" in caplog.text


def test_where_anything_may_pass_iad_plus_plus_keeps_its_input() -> None:
    models, sample = [cached_model(ENGINE_SHAPES[0], 0)], random_batch(0, JOINED, [0, 5, 20, 40])
    anything = {"top_beta": len(JOINED), "tolerance": math.inf}
    options: dict[str, Any] = {"src_dict": JOINED, **anything, "min_len": 0, "max_len_a": 2, "max_len_b": 5}
    found = decode(AggressiveGenerator.of(models, JOINED, decoding="iad++", **options), models, sample)
    for hypothesis, source in zip(found, sample["net_input"]["src_tokens"], strict=True):
        assert hypothesis["tokens"].tolist() == source[source != JOINED.pad()].tolist()


@pytest.mark.parametrize("seed", range(3))
def test_of_words_with_the_same_score_fairseqs_is_taken(seed: int) -> None:
    """For each vocabulary, `topk` decides otherwise which of equal scores is the first."""
    for words in (dictionary(40), dictionary(300)):
        models, sample = [model_of_shape(ENGINE_SHAPES[0], seed, words, words)], random_batch(seed, words, [3, 6, 9])
        twin_words(models[0])
        stock = stock_beam_one(models, words, sample, max_len_b=12)
        for decoding in ("greedy", "iad"):
            generator = AggressiveGenerator.of(models, words, src_dict=words, decoding=decoding, max_len_b=12)
            found = decode(generator, models, sample)
            assert [one["tokens"].tolist() for one in found] == [one["tokens"].tolist() for one in stock]


def test_an_ensemble_at_another_temperature() -> None:
    models = [cached_model(ENGINE_SHAPES[0], 0), cached_model(ENGINE_SHAPES[1], 1)]
    check_all_modes(models, random_batch(1, JOINED, [5, 0, 20, 1, 9]), 1, temperature=1.7, max_len_a=0.7, max_len_b=3)


def test_each_row_has_the_length_of_its_own_source() -> None:
    as_long = {"min_len_a": 1, "min_len_b": 0, "max_len_a": 1, "max_len_b": 0}
    options = {"match_source_len": True, "search_strategy": LengthConstrainedBeamSearch(JOINED, **as_long)}
    check_all_modes([cached_model(ENGINE_SHAPES[0], 0)], random_batch(1, JOINED, [5, 0, 20, 1, 9]), 1, **options)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_models_without_layers(side: str) -> None:
    models: Models = [model_of_shape(ENGINE_SHAPES[0], 1, JOINED, JOINED, 0.1, **{f"{side}_layers": 0})]
    check_all_modes(models, random_batch(1, JOINED, [3, 9]), 1, max_len_b=20)


@pytest.mark.parametrize("number", [math.nan, math.inf])
@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_a_model_whose_weights_are_no_numbers_is_refused(side: str, number: float) -> None:
    model = model_of_shape(ENGINE_SHAPES[0], 1, JOINED, JOINED)
    with torch.no_grad():
        getattr(model, side).layers[1].fc2.weight[3, 2] = number
    generator = AggressiveGenerator.of([model], JOINED, src_dict=JOINED, decoding="greedy")
    with pytest.raises(AggdecError, match=rf"{side}.layers.1.fc2.weight holds NaN or infinity"):
        generator.generate([model], random_batch(0, JOINED, [3]))


def test_min_len_above_the_longest_output_is_refused() -> None:
    models, sample = [cached_model(ENGINE_SHAPES[0], 0)], random_batch(0, JOINED, [3])
    generator = AggressiveGenerator.of(models, JOINED, src_dict=JOINED, decoding="iad", min_len=9, max_len_b=5)
    with pytest.raises(AggdecError, match=r"--min-len 9 .* 5 tokens"):
        generator.generate(models, sample)


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        ("adaptive softmax", "adaptive softmax"),
        ("dynamic convolutions", "LightConvDecoder, which is not fairseq's plain Transformer decoder"),
    ],
)
def test_the_fallback_is_said_once(shape: str, reason: str, caplog: pytest.LogCaptureFixture) -> None:
    models, sample = [cached_model(shape, 0)], random_batch(0, JOINED, [3, 4])
    generator = AggressiveGenerator.of(models, JOINED, src_dict=JOINED, decoding="iad")
    for _ in range(2):
        generator.generate(models, sample)
    assert caplog.text.count(f"this plugin's engine does not support {reason}") == 1
