"""A lossless mode whose output is another one ends every command that sees it, unless the difference is a near-tie."""

import math
import re
from copy import deepcopy
from pathlib import Path

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.lab.bench.modes import ModeSpec
from fairseq_aggdec.lab.bench.random_models import RandomModel
from fairseq_aggdec.lab.bench.record import load_record
from fairseq_aggdec.lab.bench.runs import Runs
from fairseq_aggdec.lab.tune import Setting, Sweep
from fairseq_aggdec.lab.verify.differences import Decode, beam_gap_of, gap_of
from fairseq_aggdec.lab.verify.references import References
from fairseq_aggdec.models.sizes import SIZES
from tests.lab.bench.tiny import TINY, tiny_subject
from tests.support.engine_faults import blocks_see_what_follows, branches_see_each_other
from tests.support.helpers import refused_with
from tests.support.random_models import dictionary, random_batch, random_model


def test_which_modes_promise_fairseqs_output() -> None:
    names = "greedy iad gad blockwise iad@int8 gad+whole gad++:1:2 gad++:3:0 aggressive-beam:5".split()
    assert all(ModeSpec.parse(name).is_lossless for name in names)
    others = "beam1 nar gad++ gad++:3:1 blockwise:2 ctranslate2:greedy".split()
    assert not any(ModeSpec.parse(name).is_lossless for name in others)


@pytest.mark.parametrize(
    "names, missing",
    [
        ("beam1 greedy iad iad@int8 gad++@exact", "greedy int8"),
        ("aggressive-beam:5:0 aggressive-beam:5", ""),
        ("beam4 aggressive-beam:5", "aggressive-beam:5:0 fp32"),
        (
            "beam5 aggressive-beam:5@int8 aggressive-beam:5:64@int8",
            "aggressive-beam:5:0 int8",
        ),
    ],
)
def test_a_reference_in_its_precision_is_added_for_a_lossless_mode(
    names: str, missing: str
) -> None:
    added = References("cpu").missing([*map(ModeSpec.parse, names.split())])
    assert ", ".join(f"{mode.name} {mode.precision}" for mode in added) == missing


@pytest.mark.parametrize(
    "modes, reference, refused",
    [
        # which need not be among the modes
        ("iad", "greedy", "not the output of greedy decoding"),
        ("beam3,aggressive-beam:3", "fairseq's beam 3", "not the n-best lists of fair"),
    ],
)
def test_the_benchmark_says_what_differs_and_fails(
    modes: str,
    reference: str,
    refused: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(SIZES, "base", TINY)
    out = tmp_path / "out.json"
    mode = modes.split(",")[-1]
    options = (
        "--random-model base --limit 4 --length 10 --repeats 1 --no-memory --no-profile"
    )
    command = ["bench", *options.split(), "--modes", modes, "--json", str(out)]
    aggdec(command)
    assert load_record(out).runs[-1].counts.differing == 0
    blocks_see_what_follows(monkeypatch)
    branches_see_each_other(monkeypatch)
    capsys.readouterr()
    with refused_with(rf"^{mode} at batch size 1: .*{refused}"):
        aggdec(command)
    printed = capsys.readouterr()
    assert f"| {mode}" in printed.out  # what was measured is not lost
    lines = [
        line
        for line in printed.err.splitlines()
        if line.startswith(f"{mode}: sentence ")
    ]
    assert load_record(out).runs[-1].counts.differing == len(lines) > 0
    said = f"where {reference} has .*log-probabilities differ by "
    assert all(re.search(said, line) for line in lines)


SENTENCE = "She have two brother , and he are my friend in a school ."
CONDITIONS = {"beam": 2, "batch_size": 1, "repeats": 1, "precision": "fp32"}


def test_the_demo_and_tuning_fail_too(
    tiny: RandomModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    blocks_see_what_follows(monkeypatch)
    with refused_with(r"^iad: not the output of greedy decoding"):
        aggdec(["demo", SENTENCE, "--rounds", "1", "--show", "0"])
    assert "iad: sentence 0, position" in capsys.readouterr().err
    sweep = Sweep(CONDITIONS)
    # the second differs nowhere, and has the name of the first
    settings = [Setting(8, 1, 1.0), Setting(1, 1, 1.0)]
    with (
        Runs(tiny_subject(tiny)) as runs,
        refused_with(r"gad\+\+:1:1: not the output of greedy"),
    ):
        sweep.measure(tmp_path / "sweep.json", runs, lambda outputs: 0.0, settings)


WORDS = dictionary(20)


MODEL = random_model(3, WORDS)
SAMPLE = random_batch(1, WORDS, [6])


def decode_by(generator: SequenceGenerator) -> Decode:
    return lambda sample, prefix: generator.generate([], sample, prefix_tokens=prefix)


def test_the_reference_says_how_far_two_tokens_are_apart() -> None:
    """What the model itself gives after the same beginning, computed at once."""
    generator = SequenceGenerator([MODEL], WORDS, beam_size=1)
    ((best, *_),) = generator.generate([], SAMPLE)
    tokens = best["tokens"].tolist()
    expected = tokens[3]
    found = 4 if expected != 4 else 5
    read = torch.tensor([[WORDS.eos(), *tokens[:3]]])
    with torch.no_grad():
        logits = MODEL(**SAMPLE["net_input"], prev_output_tokens=read)[0][0, -1]
    measure = gap_of(decode_by(generator), {0: SAMPLE})
    gap = measure(0, tokens[:3], expected, found)
    assert math.isclose(gap, float(logits[expected] - logits[found]), abs_tol=1e-4)


def test_a_beam_is_as_near_to_a_tie_as_its_nearest_candidates() -> None:
    model = deepcopy(MODEL)
    generator = SequenceGenerator([model], WORDS, beam_size=3, max_len_b=8)
    measure = beam_gap_of(decode_by(generator), {0: SAMPLE}, generator.search)
    gap = measure(0, [], 5, 6)
    assert 0.0 < gap < 0.5
    assert gap == measure(0, [5], 7, 8), "of the whole sentence"
    weight = model.decoder.output_projection.weight
    with torch.no_grad():
        weight[7] = weight[6]
    assert measure(0, [], 5, 6) == 0.0
