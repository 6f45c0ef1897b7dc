"""Tests of `fairseq_aggdec.lab.bench.oracle`."""

from statistics import mean

import pytest

from fairseq_aggdec.generation.edit_ratio import edit_ratio
from fairseq_aggdec.lab.bench.modes import Mode
from fairseq_aggdec.lab.bench.oracle import edited, wrong_positions
from fairseq_aggdec.lab.bench.random_models import RandomModel
from fairseq_aggdec.lab.bench.rounds import compare
from fairseq_aggdec.lab.bench.runs import Runs
from fairseq_aggdec.lab.bench.subject import OracleSettings
from tests.lab.bench.tiny import LENGTH, tiny_subject

WORDS = range(4, 400)


@pytest.mark.parametrize("ratio", [0.0, 0.3])
def test_edited_texts_have_the_edit_ratio_asked_for(ratio: float) -> None:
    texts = [list(range(4 + number, 29 + number)) for number in range(200)]
    copied = [edited(text, ratio, WORDS, number) for number, text in enumerate(texts)]
    ratios = [edit_ratio(source, text) for source, text in zip(copied, texts, strict=True)]
    assert mean(ratios) == pytest.approx(ratio, rel=0.05)


@pytest.mark.parametrize("accepted", [1.0, 2.5])
def test_drafts_fail_as_often_as_asked_for(accepted: float) -> None:
    """Counts what the loop does: up to the next wrong token, or the block's end and the bonus token."""
    block, length, iterations = 8, 500, 0
    for number in range(20):
        wrong = set(wrong_positions(length, accepted, block, number))
        position = 0
        while position < length:
            ahead = (k for k in range(block) if position + k in wrong)
            position += 1 + next(ahead, block)
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
            greedy, drafted = compare([runs.runner(Mode.parse(name), 2) for name in ("greedy", mode)], repeats=1)
        for number, output in greedy.outputs.items():
            assert drafted.outputs[number].tokens == output.tokens
            assert len(output.tokens) == LENGTH + 1
        iterations.append(mean(o.stats.iterations for o in drafted.outputs.values() if o.stats is not None))
    assert iterations[0] < LENGTH
    assert iterations[0] < iterations[1] <= LENGTH + 1
