"""Tests of `fairseq_aggdec.benchmark`."""

import pytest

from fairseq_aggdec import benchmark, register
from fairseq_aggdec.errors import AggdecError
from tests.helpers import ToyModel


@pytest.fixture(scope="module")
def results(toy_model_dir: ToyModel) -> list[benchmark.ModeResult]:
    register()
    task, models = benchmark.load(str(toy_model_dir.checkpoint), str(toy_model_dir.data))
    task.load_dataset("test")
    sources = [task.dataset("test").src[number] for number in range(6)]
    batches = benchmark.batches_of(task, sources, 2)
    return benchmark.compare(task, models, batches, ["beam5", "beam1", "greedy", "iad"], rounds=3, progress=False)


def test_every_mode_decodes_every_sentence_in_every_round(results: list[benchmark.ModeResult]) -> None:
    for result in results:
        assert sorted(result.outputs) == list(range(6))
        assert [len(latencies) for latencies in result.latencies] == [3, 3, 3]
        assert result.rounds == [sum(latencies) for latencies in result.latencies]
        assert sorted(result.rounds)[1] == result.seconds


def test_lossless_modes_agree_with_beam_one(results: list[benchmark.ModeResult]) -> None:
    _, beam_one, greedy, iad = results
    assert greedy.identical_to(beam_one) == iad.identical_to(beam_one) == 6


def test_counters_come_from_the_plugin_only(results: list[benchmark.ModeResult]) -> None:
    beam_five, beam_one, greedy, iad = results
    assert beam_five.totals is None
    assert beam_one.totals is None
    assert greedy.totals is not None
    assert iad.totals is not None
    assert greedy.totals.iterations == sum(len(tokens) for tokens in greedy.outputs.values())
    assert iad.totals.iterations <= greedy.totals.iterations
    assert iad.totals.committed == greedy.totals.committed


def test_table_is_the_arithmetic_of_the_rounds() -> None:
    slow = benchmark.ModeResult("beam5", rounds=[4.0, 6.0, 5.0], outputs={0: [5, 2], 1: [6, 2]})
    greedy = benchmark.ModeResult("greedy", rounds=[2.0, 2.0, 3.0], outputs={0: [5, 2], 1: [7, 2]})
    headers, rows = benchmark.table([slow, greedy])
    first, second = (dict(zip(headers, row, strict=True)) for row in rows)
    assert first["seconds\n(median, range)"] == "5.00 (4.00-6.00)"
    assert second["speed-up\nover beam5"] == "2.50x"
    assert second["speed-up\nover greedy"] == "1.00x"
    assert first["identical\nto greedy"] == "1 of 2"


def test_unknown_mode_is_refused_by_name(toy_model_dir: ToyModel) -> None:
    register()
    task, models = benchmark.load(str(toy_model_dir.checkpoint), str(toy_model_dir.data))
    with pytest.raises(AggdecError, match="unknown mode fast: choose from beam5"):
        benchmark.compare(task, models, [], ["fast"])


@pytest.mark.parametrize("name", ["beam", "beamx", "gad++:3", "gad++:a:b", "gad:1:2", ""])
def test_malformed_modes_are_refused(name: str) -> None:
    with pytest.raises(AggdecError, match="unknown mode"):
        benchmark.Mode.parse(name)


def test_modes_carry_their_settings() -> None:
    assert benchmark.Mode.parse("beam4") == benchmark.Mode("beam4", "beam", 4)
    assert benchmark.Mode.parse("gad++:5:3.5") == benchmark.Mode("gad++:5:3.5", "gad++", 1, 5, 3.5)


def test_bleu_is_that_of_the_sentences_decoded(toy_model_dir: ToyModel) -> None:
    register()
    task, _ = benchmark.load(str(toy_model_dir.checkpoint), str(toy_model_dir.data))
    symbols = task.target_dictionary.symbols
    words = [number for number, symbol in enumerate(symbols) if symbol.isalpha()][:6]
    result = benchmark.ModeResult("greedy", outputs={1: [*words, task.target_dictionary.eos()]})
    text = " ".join(symbols[number] for number in words)
    benchmark.score(task, [result], ["never decoded", text], "en")
    assert result.bleu == pytest.approx(100)
