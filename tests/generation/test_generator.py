"""The generator against fairseq's own beam of one, where tests/fuzzing does not look; and what it refuses."""

import math
from typing import Any

import pytest
import torch
from fairseq.search import LengthConstrainedBeamSearch
from fairseq.sequence_generator import SequenceGenerator, SequenceGeneratorWithAlignment
from torch import Tensor

from fairseq_aggdec.engine.arithmetic import Arithmetic
from fairseq_aggdec.engine.drafter import LoadedDrafter
from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.generation.drafting import BlockDraftOptions, encoded_length
from fairseq_aggdec.generation.generator import AggressiveGenerator
from fairseq_aggdec.generation.options import Decoding
from fairseq_aggdec.generation.samples import Batch
from tests.support.helpers import refused_with
from tests.support.oracle import assert_fairseqs
from tests.support.random_models import (
    ENGINE_SHAPES,
    dictionary,
    model_of_shape,
    random_batch,
    random_drafter,
    twin_words,
)
from tests.support.small_generators import (
    BATCH,
    FEW_WORDS,
    WORDS,
    cached_model,
    decoded,
    generator,
    small_model,
    tokens,
)


@torch.no_grad()
def test_a_drafter_alone_says_what_its_forward_pass_says() -> None:
    """Block after block, under the rules of the search, with scores of its own."""
    temperature = 1.7
    least = 3
    prefix = [7, 8]
    eos = FEW_WORDS.eos()
    model = random_drafter("bidirectional", 3, FEW_WORDS, 3, max_target_positions=64)
    decoder = model.decoder
    decoder.output_projection.weight[eos] *= 2.5  # some outputs end
    sample = random_batch(1, FEW_WORDS, [5, 9, 1, 7, 3])
    ours = generator(
        [model],
        "nar",
        FEW_WORDS,
        block_draft=BlockDraftOptions(LoadedDrafter(model), 3),
        max_len_b=10,
        temperature=temperature,
        min_len=least,
        tokens_to_suppress=("w1",),
    )
    found = ours.generate([], sample, prefix_tokens=torch.tensor([prefix] * 5))
    banned = torch.tensor([*decoder.never_drafted, FEW_WORDS.index("w1")])
    for row, (one,) in enumerate(found):
        net_input = sample["net_input"].items()
        source = model.encode(**{name: value[[row]] for name, value in net_input})
        text = [eos]
        scores = list[float]()
        while eos not in text[1:]:
            reading = decoder.read(torch.tensor([text]), source)
            block = decoder.draft(reading, torch.tensor([[len(text) - 1]]))[0, 0]
            for logits in decoder.output_layer(block) / temperature:
                log_probs = logits.log_softmax(-1)
                place = len(text) - 1
                allowed = log_probs.index_fill(0, banned, -math.inf)
                if place < least:
                    allowed[eos] = -math.inf
                best = eos if place == 10 else int(allowed.argmax())
                text.append(prefix[place] if place < len(prefix) else best)
                scores.append(float(log_probs[text[-1]]))
        count = text.index(eos, 1)
        assert one["tokens"].tolist() == text[1 : count + 1]
        expected = pytest.approx(scores[:count], abs=1e-4)
        assert one["positional_scores"].tolist() == expected
        assert one["steps"] == math.ceil(count / 3)
    assert len({len(one["tokens"]) for (one,) in found}) > 1


@pytest.mark.parametrize("seed", range(3))
def test_of_words_with_the_same_score_fairseqs_is_taken(seed: int) -> None:
    """For each vocabulary, `topk` decides otherwise which of equal scores is the first."""
    for words in (dictionary(40), dictionary(300)):
        models = [model_of_shape(ENGINE_SHAPES[0], seed, words)]
        sample = random_batch(seed, words, [3, 6, 9])
        twin_words(models[0])
        for mode in ("greedy", "iad"):
            found = generator(models, mode, words, max_len_b=12).generate(
                models, sample
            )
            assert_fairseqs(found, models, words, sample, near_tie=0, max_len_b=12)


@pytest.mark.parametrize("mode", ["greedy", "iad"])
def test_an_ensemble_at_another_temperature(mode: str) -> None:
    models = [cached_model(shape, 1) for shape in ENGINE_SHAPES[:2]]
    sample = random_batch(1, FEW_WORDS, [5, 0, 20, 9])
    options: Any = {"temperature": 1.7, "max_len_a": 0.7, "max_len_b": 3}
    found = generator(models, mode, FEW_WORDS, **options).generate(models, sample)
    assert_fairseqs(found, models, FEW_WORDS, sample, **options)


@pytest.mark.parametrize("mode", ["greedy", "iad"])
def test_each_row_has_the_length_of_its_own_source(mode: str) -> None:
    models = [cached_model(ENGINE_SHAPES[0], 0)]
    sample = random_batch(1, FEW_WORDS, [5, 0, 20, 1, 9])
    strategy = LengthConstrainedBeamSearch(
        FEW_WORDS, min_len_a=1, min_len_b=0, max_len_a=1, max_len_b=0
    )
    options: Any = {"match_source_len": True, "search_strategy": strategy}
    found = generator(models, mode, FEW_WORDS, **options).generate(models, sample)
    assert_fairseqs(found, models, FEW_WORDS, sample, max_len_b=20, **options)


@pytest.mark.int8
def test_low_precision_is_another_arithmetic() -> None:
    """Scores near the model's own, and not the same."""
    models = [cached_model(ENGINE_SHAPES[0], 3)]
    sample = random_batch(3, FEW_WORDS, [5, 9, 2, 7])
    scores: list[Tensor] = []
    for arithmetic in (Arithmetic(), Arithmetic("int8")):
        ours = generator(
            models, "greedy", FEW_WORDS, engines=Engines(arithmetic), max_len_b=3
        )
        found = ours.generate(models, sample)
        scores.append(torch.stack([one["positional_scores"][0] for (one,) in found]))
    assert not torch.equal(*scores)
    torch.testing.assert_close(*scores, atol=0.3, rtol=0.1)


def test_an_option_without_effect_and_a_fallback_are_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    models = [cached_model("dynamic convolutions", 0)]
    sample = random_batch(0, FEW_WORDS, [3, 4])
    ours = generator(models, "iad", FEW_WORDS, no_repeat_ngram_size=2)
    assert ours.no_repeat_ngram_size == 0
    assert "--block-ngrams" in caplog.text
    for _ in range(2):
        ours.generate(models, sample)
    reason = "LightConvDecoder, which is not fairseq's plain Transformer decoder"
    assert caplog.text.count(f"this plugin's engine does not support {reason}") == 1


@pytest.mark.parametrize("number", [math.nan, math.inf])
@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_a_model_whose_weights_are_no_numbers_is_refused(
    side: str, number: float
) -> None:
    model = model_of_shape(ENGINE_SHAPES[0], 1, FEW_WORDS)
    with torch.no_grad():
        getattr(model, side).layers[1].fc2.weight[3, 2] = number
    with refused_with(rf"{side}.layers.1.fc2.weight holds NaN or infinity"):
        generator([model], "greedy", FEW_WORDS).generate(
            [model], random_batch(0, FEW_WORDS, [3])
        )


def test_what_cannot_be_done_is_refused() -> None:
    models = [cached_model(ENGINE_SHAPES[0], 0)]
    sample = random_batch(0, FEW_WORDS, [3])
    with refused_with(r"--min-len 9 .* 5 tokens"):
        generator(models, "iad", FEW_WORDS, min_len=9, max_len_b=5).generate(
            models, sample
        )
    without_heads = generator(
        models, "blockwise", FEW_WORDS, block_draft=BlockDraftOptions(None, 6)
    )
    with refused_with("--decoding blockwise needs this plugin's engine"):
        without_heads.generate(models, sample)


def test_of_speech_a_decoder_attends_to_fewer_positions_than_there_are_frames() -> None:
    """By these `--drafts auto` knows what attention costs."""
    states = {"encoder_out": [torch.zeros(100, 2, 8)]}
    batch = Batch._make([{}, None, None, [], None, [states]])
    assert encoded_length(batch) == 100


def test_the_values_of_the_search_are_those_of_the_generator_that_is_wrapped() -> None:
    model = small_model()
    wrapped = SequenceGenerator(
        [model], WORDS, beam_size=1, max_len_a=0.5, max_len_b=7, min_len=2, len_penalty=0.3, temperature=1.2,
        unk_penalty=1.0, tokens_to_suppress=("w3",), eos=WORDS.index("w5"), normalize_scores=False,
    )  # fmt: skip
    ours = AggressiveGenerator(wrapped, Decoding("iad"), WORDS)
    assert isinstance(ours, SequenceGenerator)
    assert decoded(ours, BATCH) == tokens(wrapped.generate([], BATCH))


def test_what_cannot_be_wrapped_is_refused_by_name() -> None:
    model = small_model()
    with refused_with(
        "SequenceGeneratorWithAlignment: --decoding iad replaces fairseq"
    ):
        AggressiveGenerator(
            SequenceGeneratorWithAlignment([model], WORDS), Decoding("iad"), WORDS
        )
    with refused_with("--decoding greedy has a beam of one, and not of 3"):
        AggressiveGenerator(
            SequenceGenerator([model], WORDS, beam_size=3), Decoding("greedy"), WORDS
        )
    with refused_with("cannot honour a language model"):
        AggressiveGenerator(
            SequenceGenerator([model], WORDS, lm_model=small_model(2)),
            Decoding("iad"),
            WORDS,
        )
