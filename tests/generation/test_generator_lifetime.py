"""One generator over many batches: models that change, threads, broken numbers, copies of itself.

What is kept from batch to batch must not change an output.
"""

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import Mock
from weakref import WeakSet

import pytest
import torch
from fairseq.optim.adam import Adam as FairseqAdam
from fairseq.search import LengthConstrainedBeamSearch, Sampling
from torch import nn

from fairseq_aggdec.engine import weights_snapshot
from fairseq_aggdec.engine.drafter import LoadedDrafter
from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.engine.graphs.graph_cache import GraphCache
from fairseq_aggdec.generation.drafting import BlockDraftOptions
from fairseq_aggdec.process import no_garbage_collection
from tests.support.helpers import refused_with
from tests.support.random_models import (
    random_batch,
    random_drafter,
    share_encoder,
)
from tests.support.small_generators import (
    BATCH,
    BATCHES,
    MODES,
    WORDS,
    decoded,
    generator,
    small_model,
    stock,
)


def load_other_weights(model: Any) -> None:
    model.load_state_dict(small_model(2).state_dict())


def add_to_a_weight(model: Any) -> None:
    with torch.no_grad():
        model.decoder.layers[1].fc1.weight.mul_(-3)


def put_another_weight(model: Any) -> None:
    layer = model.encoder.layers[0]
    layer.fc2.weight = nn.Parameter(-3 * layer.fc2.weight)


def put_another_part(model: Any) -> None:
    model.decoder.layers[0] = small_model(2).decoder.layers[0]


def take_a_step(optimizer: Any) -> None:
    """Of every trained weight that has no gradient yet all numbers change."""
    for group in optimizer.param_groups:
        for weight in group["params"]:
            if weight.grad is None:
                weight.grad = 0.1 * weight.detach().sign()
    optimizer.step()


def step_of_fairseqs_optimizer(model: Any) -> None:
    """Which writes through `weight.data`; two matrices are trained."""
    layer = model.decoder.layers[1]
    take_a_step(
        FairseqAdam([layer.encoder_attn.v_proj.weight, layer.fc1.weight], lr=0.3)
    )


def step_of_few_symbols(model: Any) -> None:
    """Plain gradient descent hardly moves the scores of symbols that are rare; EOS is in every sentence."""
    scores = model.decoder.output_projection.weight
    scores.grad = torch.zeros_like(scores)
    scores.grad[[WORDS.eos(), WORDS.index("w3")]] = scores.detach()[
        [WORDS.eos(), WORDS.index("w3")]
    ]
    take_a_step(torch.optim.SGD([scores], lr=2.0, fused=True))


def step_of_a_layer_in_which_a_unit_is_off(model: Any) -> None:
    """Its row has no gradient; it is the first one that is looked at."""
    weight = model.decoder.layers[1].fc1.weight
    weight.grad = weight.detach().sign()
    weight.grad[2] = 0
    take_a_step(torch.optim.SGD([weight], lr=1.0, fused=True))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "change",
    [
        load_other_weights, add_to_a_weight, put_another_weight, put_another_part,
        step_of_fairseqs_optimizer, step_of_few_symbols,
        step_of_a_layer_in_which_a_unit_is_off,
    ],
)  # fmt: skip
def test_a_change_of_weights_is_noticed(change: Any, mode: str) -> None:
    model = small_model()
    ours = generator([model], mode)
    before = decoded(ours, BATCH)
    assert before == stock(model, mode, BATCH)
    change(model)
    expected = stock(model, mode, BATCH)
    assert expected != before
    assert decoded(ours, BATCH) == expected


@pytest.mark.parametrize(
    "step", [step_of_fairseqs_optimizer, step_of_a_layer_in_which_a_unit_is_off]
)
@pytest.mark.parametrize("mode", MODES)
def test_what_a_gpu_has_decoded_with_old_weights_is_decoded_again(
    mode: str, step: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes of the weights arrive while it decodes."""
    monkeypatch.setattr(weights_snapshot, "runs_async", lambda device: True)
    model = small_model()
    ours = generator([model], mode)
    ours.generate([model], BATCH)
    step(model)
    decode = Mock(side_effect=ours._decode)
    monkeypatch.setattr(ours, "_decode", decode)
    for _ in range(2):
        assert decoded(ours, BATCH) == stock(model, mode, BATCH)
    assert decode.call_count == 3


def test_an_old_engine_is_gone_before_a_new_one_is_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without Python's collector: what graphs read may be a quarter of a GPU's memory."""
    alive = WeakSet[GraphCache]()
    most = list[int]()
    create = GraphCache.__init__

    def counted(self: GraphCache, *arguments: Any, **options: Any) -> None:
        create(self, *arguments, **options)
        alive.add(self)
        most.append(len(alive))

    monkeypatch.setenv("AGGDEC_BACKEND", "graphs")
    monkeypatch.setattr(GraphCache, "__init__", counted)
    model = small_model()
    drafter = random_drafter("causal, post-norm sinusoidal", 2, WORDS, 3)
    draft = BlockDraftOptions(LoadedDrafter(drafter), 3)
    ours = generator([model], "gad", block_draft=draft, drafts="whole")
    with no_garbage_collection():
        for _ in range(3):
            for part in (model, drafter):
                add_to_a_weight(part)
                put_another_weight(part)
            ours.generate([model], BATCH)
        assert max(most) == len(alive) == len(most) / 3


@pytest.mark.parametrize("mode", MODES)
def test_threads_take_turns(mode: str) -> None:
    """They share a generator, or the engines of two."""
    model = small_model()
    engines = Engines()
    both = [generator([model], mode, engines=engines) for _ in range(2)]
    expected = [stock(model, mode, batch) for batch in BATCHES]

    def is_right(number: int) -> bool:
        which = number % len(BATCHES)
        return decoded(both[number % 3 % 2], BATCHES[which]) == expected[which]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # they do get into each other's way
    try:
        with ThreadPoolExecutor(3) as pool:
            assert all(pool.map(is_right, range(30)))
    finally:
        sys.setswitchinterval(interval)


def test_conversions_are_noticed() -> None:
    """Also where a converted weight lies where it lay before."""
    engines = Engines()
    for seed in range(8):
        model = small_model(seed)
        before = engines.decoder(model.decoder)
        model.half().float()
        assert engines.decoder(model.decoder) is not before


def test_a_shared_encoder_is_looked_for_again_where_weights_change() -> None:
    model = small_model()
    drafter = random_drafter("causal, post-norm sinusoidal", 1, WORDS, 5)
    share_encoder(drafter, model)
    loaded = LoadedDrafter(drafter)
    ours = generator([model], "gad", block_draft=BlockDraftOptions(loaded, 5))
    ours.generate([model], BATCH)
    assert loaded._shared == 0
    load_other_weights(model)
    assert decoded(ours, BATCH) == stock(model, "gad", BATCH)
    assert loaded._shared is None


@pytest.mark.usefixtures("either_engine")
@pytest.mark.parametrize("mode", MODES)
def test_an_overflowing_sentence_is_an_error_and_leaves_nothing_behind(
    mode: str,
) -> None:
    model = small_model()
    word = WORDS.index("w1")
    with torch.no_grad():
        model.encoder.embed_tokens.weight[word] = float("nan")
    clean, broken = (random_batch(7, WORDS, [4, 4, 4]) for _ in range(2))
    for batch in (clean, broken):
        source = batch["net_input"]["src_tokens"]
        source[source == word] = word + 1
    broken["net_input"]["src_tokens"][1, 2] = word
    ours = generator([model], mode)
    expected = stock(model, mode, clean)
    assert decoded(ours, clean) == expected
    with pytest.raises(AssertionError):
        stock(model, mode, broken)
    with refused_with(r"are NaN|no hypothesis is left"):
        ours.generate([model], broken)
    assert decoded(ours, clean) == expected


@pytest.mark.usefixtures("either_engine")
def test_engines_made_in_training_have_all_layers() -> None:
    """fairseq's list of layers drops some at random while LayerDrop trains."""
    model = small_model(
        encoder_layerdrop=0.7, decoder_layerdrop=0.7, encoder_layers=4, decoder_layers=4
    )
    expected = stock(model, "greedy", BATCH)
    ours = generator([model], "greedy")
    model.train()
    torch.manual_seed(1)
    assert decoded(ours, BATCH) == expected
    model.eval()
    assert decoded(ours, BATCH) == expected


@pytest.mark.parametrize("mode", MODES)
def test_a_generator_that_was_used_can_be_copied_and_pickled(mode: str) -> None:
    model = small_model()
    ours = generator([model], mode)
    expected = decoded(ours, BATCH)
    for other in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert decoded(other, BATCH) == expected


@pytest.mark.usefixtures("either_engine")
def test_inference_mode_comes_and_goes() -> None:
    model = small_model()
    ours = generator([model], "iad")
    for batch in BATCHES:
        with torch.inference_mode():
            assert decoded(ours, batch) == stock(model, "iad", batch)
        assert decoded(ours, batch) == stock(model, "iad", batch)


def test_autocast_and_other_searches_are_refused() -> None:
    model = small_model()
    with (
        torch.autocast("cpu", torch.bfloat16),
        refused_with(r"does not follow torch\.autocast"),
    ):
        generator([model], "iad").generate([model], BATCH)
    as_the_source, twice = (
        LengthConstrainedBeamSearch(WORDS, 1, 0, *longest)
        for longest in ((1, 0), (2, 5))
    )
    for options in [
        {"search_strategy": Sampling(WORDS)},
        {"search_strategy": as_the_source},
        {"search_strategy": twice, "match_source_len": True},
        {"search_strategy": as_the_source, "match_source_len": True, "eos": 7},
        {"match_source_len": True},
    ]:
        with refused_with(r"search_strategy .*: the plugin's modes have .*BeamSearch"):
            generator([model], "greedy", **options)


@pytest.mark.usefixtures("either_engine")
def test_a_source_longer_than_learned_positions_is_refused() -> None:
    model = small_model(encoder_learned_pos=True, max_source_positions=12)
    ours = generator([model], "greedy")
    fits = random_batch(1, WORDS, [11, 2])
    too_long = random_batch(1, WORDS, [12, 2])
    assert decoded(ours, fits) == stock(model, "greedy", fits)
    wider = nn.functional.pad(
        fits["net_input"]["src_tokens"], (2, 0), value=WORDS.pad()
    )
    padded = {"net_input": {"src_tokens": wider}}
    assert decoded(ours, padded) == stock(model, "greedy", fits)
    with pytest.raises(IndexError):
        stock(model, "greedy", too_long)
    with refused_with(r"a source has 13 symbols.* only 12 positions"):
        ours.generate([model], too_long)
