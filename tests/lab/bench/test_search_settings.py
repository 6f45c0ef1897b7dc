"""Search options of `aggdec bench`: what is timed is what fairseq-generate says with the same options."""

import json
from contextlib import redirect_stdout
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator

import fairseq_aggdec
from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.cli.verbs import parse
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.bench.modes import Mode
from fairseq_aggdec.lab.bench.runs import Runs
from fairseq_aggdec.lab.bench.subject import Subject, read_subject
from tests.support.helpers import ToyModel
from tests.support.oracle import by_fairseq

SEARCH = "--lenpen 2 --unkpen 0.5 --min-len 4 --max-len-a 0.5 --max-len-b 6"
NGRAMS = "--no-repeat-ngram-size 2 --block-ngrams"
CUT = "--truncate-source --max-source-positions 9"
NAMES = {"len_penalty": 2.0, "unk_penalty": 0.5, "min_len": 4, "max_len_a": 0.5, "max_len_b": 6}
"""SEARCH, as fairseq's generator takes it"""


def arguments(model: ToyModel, options: str) -> Any:
    fairseq_aggdec.register()
    given = [str(model.data), "--path", str(model.checkpoint), "--limit", "12", *options.split()]
    return parse(["bench", *given])


def subject_of(model: ToyModel, options: str) -> Subject:
    return read_subject(arguments(model, options))[0]


def outputs(runs: Runs, name: str, batch_size: int) -> list[list[int]]:
    runner = runs.runner(Mode.parse(name), batch_size)
    decoded = [runner.outputs(number, runner.decode(number)) for number in range(len(runner.batches))]
    found = {number: output.tokens for part in decoded for number, output in part.items()}
    return [found[number] for number in sorted(found)]


def repeats(tokens: list[int]) -> bool:
    """Whether two of its tokens come in the same order again."""
    pairs = list(pairwise(tokens))
    return len(set(pairs)) < len(pairs)


def test_all_modes_search_as_they_are_told(toy_model_dir: ToyModel) -> None:
    """Our modes give fairseq's output of the same options, and its own beams are given them, too."""
    with Runs(subject_of(toy_model_dir, SEARCH)) as runs, torch.no_grad():
        task, models = runs.load("fp32")
        batches = runs._batches(task, 1)
        expected, wide = [], []
        for batch in batches:
            expected.append(by_fairseq(models, task.target_dictionary, batch, 1, **NAMES)[0][0]["tokens"].tolist())
            beam = SequenceGenerator(models, task.target_dictionary, beam_size=3, **NAMES)
            wide.append(beam.generate(models, batch)[0][0]["tokens"].tolist())
        for name in ("beam1", "greedy", "iad"):
            assert outputs(runs, name, 1) == expected
        assert outputs(runs, "beam3", 1) == wide
    assert all(len(tokens) >= 5 for tokens in expected)
    with Runs(subject_of(toy_model_dir, "")) as runs:
        assert outputs(runs, "greedy", 1) != expected


def test_repeated_ngrams_are_banned_in_our_modes_and_peers(toy_model_dir: ToyModel) -> None:
    options = f"--min-len 12 --max-len-b 20 {NGRAMS}"
    with Runs(subject_of(toy_model_dir, options)) as runs:
        greedy = outputs(runs, "greedy", 2)
        assert not any(map(repeats, greedy))
        for name in ("iad", "ctranslate2:greedy"):
            assert outputs(runs, name, 2) == greedy
        assert any(map(repeats, outputs(runs, "beam1", 2)))  # fairseq's own blocker does nothing here
    with Runs(subject_of(toy_model_dir, options.replace("--block-ngrams", ""))) as runs:
        plain = outputs(runs, "greedy", 2)
        assert any(map(repeats, plain))
        assert outputs(runs, "beam1", 2) == plain


def test_sources_are_cut_as_fairseq_cuts_them(toy_model_dir: ToyModel) -> None:
    whole, cut = (subject_of(toy_model_dir, options).sentences for options in ("", CUT))
    assert [list(sentence) for sentence in cut] == [[*sentence[:-1][:8], whole[0][-1]] for sentence in whole]
    with pytest.raises(AggdecError, match=r"has .* more than --max-source-positions 9: add --trunc"):
        subject_of(toy_model_dir, "--max-source-positions 9")


def test_the_record_says_how_was_searched(toy_model_dir: ToyModel, tmp_path: Path) -> None:
    options = f"{SEARCH} {NGRAMS} {CUT}"
    line = f"{toy_model_dir.data} --path {toy_model_dir.checkpoint} --limit 12 --modes greedy,iad --no-memory {options}"
    with redirect_stdout(StringIO()) as printed:
        aggdec(["bench", *line.split(), "--repeats", "1", "--json", str(tmp_path / "bench.json")])
    content: dict[str, Any] = json.loads((tmp_path / "bench.json").read_text())
    assert content["search"] == {
        "lenpen": 2.0, "unkpen": 0.5, "max_len_a": 0.5, "max_len_b": 6, "min_len": 4, "no_repeat_ngram_size": 2,
        "block_ngrams": True, "truncate_source": True, "max_source_positions": 9,
    }  # fmt: skip
    assert options in content["command"]
    assert "\nsearch: --lenpen 2 --unkpen 0.5 --max-len-a 0.5 --max-len-b 6 --min-len 4 --no-rep" in printed.getvalue()
    assert content["source_tokens"] <= 9 * content["sentences"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--unkpen 1 --peers ctranslate2:greedy", "mode ctranslate2:greedy cannot honour --unkpen: leave out"),
        ("--no-repeat-ngram-size 3 --peers ctranslate2", "mode ctranslate2:greedy always bans .*add --block-ngrams"),
        ("--lenpen 2 --min-len 5 --nat-peer x=y", "mode x cannot honour --lenpen, --min-len"),
    ],
)
def test_what_a_peer_cannot_honour_is_refused_before_anything_is_loaded(options: str, reason: str) -> None:
    with pytest.raises(AggdecError, match=reason):
        aggdec(["bench", "DATA", "--path", "x", *options.split()])
