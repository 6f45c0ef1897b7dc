"""Tests of `fairseq_aggdec.lab.bench.oracle`."""

from statistics import mean

import pytest

from fairseq_aggdec.generation.edit_ratio import edit_ratio
from fairseq_aggdec.lab.bench.modes import Mode
from fairseq_aggdec.lab.bench.oracle import edited, wrong_positions
from fairseq_aggdec.lab.bench.random_models import RandomModel
from fairseq_aggdec.lab.bench.rounds import decode_once
from fairseq_aggdec.lab.bench.runs import Runs
from fairseq_aggdec.lab.bench.subject import OracleSettings
from tests.lab.bench.tiny import LENGTH, tiny_subject


@pytest.mark.parametrize("ratio", [0.0, 0.3])
def test_edited_texts_have_the_edit_ratio_asked_for(ratio: float) -> None:
    texts = [list(range(4 + number, 29 + number)) for number in range(200)]
    ratios = [edit_ratio(edited(text, ratio, range(4, 400), number), text) for number, text in enumerate(texts)]
    assert mean(ratios) == pytest.approx(ratio, rel=0.05)


@pytest.mark.parametrize("accepted", [1.0, 2.5])
def test_drafts_fail_as_often_as_asked_for(accepted: float) -> None:
    """Counts what the loop does: up to the next wrong token, or the block's end and the bonus token."""
    block, length, iterations = 8, 500, 0
    for number in range(20):
        wrong, position = set(wrong_positions(length, accepted, block, number)), 0
        while position < length:
            position += 1 + next((k for k in range(block) if position + k in wrong), block)
            iterations += 1
    assert 20 * length / iterations == pytest.approx(accepted, rel=0.05)


@pytest.mark.parametrize(
    ("mode", "good", "bad"),
    [
        ("iad", OracleSettings(0.0, 1.0), OracleSettings(0.9, 1.0)),
        ("gad", OracleSettings(0.1, 8.0), OracleSettings(0.1, 2.0)),
        ("speculative+whole", OracleSettings(0.1, 8.0), OracleSettings(0.1, 2.0)),
    ],
)
def test_decoding_with_an_oracle_is_lossless_and_as_fast_as_it_says(
    mode: str, good: OracleSettings, bad: OracleSettings, tiny: RandomModel
) -> None:
    iterations = []
    for settings in (good, bad):
        with Runs(tiny_subject(tiny, oracle=settings)) as runs:
            greedy, drafted = (decode_once(runs.runner(Mode.parse(name), 2)).outputs for name in ("greedy", mode))
        for number, output in greedy.items():
            assert drafted[number].tokens == output.tokens
            assert len(output.tokens) == LENGTH + 1
        iterations.append(mean(output.stats.iterations for output in drafted.values() if output.stats is not None))
    assert iterations[0] < LENGTH
    assert iterations[0] < iterations[1] <= LENGTH + 1
