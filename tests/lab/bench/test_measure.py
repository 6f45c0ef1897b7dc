"""The whole benchmark: its record and tables, and search options, by which modes say what fairseq-generate says."""

import json
from pathlib import Path

import pytest
import torch

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.cli.verbs import parse
from fairseq_aggdec.lab.bench.modes import ModeSpec
from fairseq_aggdec.lab.bench.module_times import MODULES
from fairseq_aggdec.lab.bench.record import load_record
from fairseq_aggdec.lab.bench.rounds import decode_once
from fairseq_aggdec.lab.bench.runs import Runs
from fairseq_aggdec.lab.bench.subject import Subject, read_subject
from fairseq_aggdec.lab.bench.tables import markdown
from fairseq_aggdec.models.sizes import SIZES
from tests.lab.bench.tiny import TINY
from tests.support.helpers import ToyModel, refused_with
from tests.support.oracle import by_fairseq

MODES = "beam2 beam1 greedy iad gad greedy@int8 iad@int8".split()


@pytest.mark.int8
def test_the_tables_are_those_of_the_record_and_lossless_modes_say_what_greedy_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(SIZES, "base", TINY)
    path = tmp_path / "out.json"
    options = (
        "--random-model base --limit 4 --length 8 --block-size 6 --repeats 2 --batch-sizes 1,2 --no-memory "
        f"--modes {','.join(MODES)} --json {path}"
    )
    aggdec(["bench", *options.split()])
    record = load_record(path)
    assert capsys.readouterr().out.strip() == markdown(record)
    for size in (1, 2):
        runs = {run.mode: run for run in record.at(size)}
        assert list(runs) == MODES
        for run in runs.values():
            modules = run.times.modules
            assert (modules is None) == (run.implementation == "fairseq")
            # a call within a timed call counts once
            assert modules is None or min(modules.values()) > 0
        greedy = runs["greedy"].counts
        gad = runs["gad"].counts
        assert greedy.tokens == greedy.iterations == 9 * 4
        for mode in ("beam1", "iad", "gad", "iad@int8"):
            counts = runs[mode].counts
            assert counts.identical == 4
            assert counts.compared_with == runs[mode].precision
        assert (gad.differing, runs["beam1"].counts.differing) == (0, None)
        # in a batch of so small a model a draft does not pay
        drafts = size == 1
        assert ((gad.iterations or 0) < greedy.iterations) == drafts
        assert gad.longest_draft == (6 if drafts else 0)
        assert (gad.accepted or 0) <= (gad.drafted or 0)
    alone = {run.mode: run.times for run in record.at(1)}
    assert sum(alone["iad"].speed_ups or ()) == 4
    assert sorted(alone["gad"].modules or ()) == sorted([*MODULES, "rest"])


SEARCH = "--lenpen 2 --unkpen 0.5 --min-len 4 --max-len-a 0.5 --max-len-b 6"
LONG = "--min-len 12 --max-len-b 20 --no-repeat-ngram-size 2"
NGRAMS = "--no-repeat-ngram-size 2 --block-ngrams"
CUT = "--truncate-source --max-source-positions 9"
NAMES = {
    "len_penalty": 2.0,
    "unk_penalty": 0.5,
    "min_len": 4,
    "max_len_a": 0.5,
    "max_len_b": 6,
}
"""SEARCH, as fairseq's generator takes it"""


def subject_of(model: ToyModel, options: str) -> Subject:
    given = f"{model.data} --path {model.checkpoint} --limit 12 {options}"
    return read_subject(parse(["bench", *given.split()]))[0]


def outputs(runs: Runs, name: str, batch_size: int) -> list[list[int]]:
    found = decode_once(runs.runner(ModeSpec.parse(name), batch_size)).outputs
    return [output.tokens for _, output in sorted(found.items())]


def test_all_modes_search_as_they_are_told(toy_model_dir: ToyModel) -> None:
    """Our modes give fairseq's output of the same options, and its own beams are given them, too."""
    with Runs(subject_of(toy_model_dir, SEARCH)) as runs, torch.no_grad():
        task, models = runs.load("fp32")
        for beam, names in ((1, ("beam1", "greedy", "iad")), (3, ("beam3",))):
            lists = [
                by_fairseq(models, task.target_dictionary, one, beam, **NAMES)
                for one in runs.batches(task, 1)
            ]
            expected = [found[0][0]["tokens"].tolist() for found in lists]
            assert all(len(tokens) >= 5 for tokens in expected)
            for name in names:
                assert outputs(runs, name, 1) == expected
    with Runs(subject_of(toy_model_dir, "")) as runs:
        assert outputs(runs, "beam3", 1) != expected


def test_repeated_ngrams_are_banned_in_our_modes_and_peers(
    toy_model_dir: ToyModel,
) -> None:
    """fairseq's own blocker does nothing here."""
    with Runs(subject_of(toy_model_dir, f"{LONG} --block-ngrams")) as runs:
        greedy, iad, peer, stock = (
            outputs(runs, name, 2)
            for name in ("greedy", "iad", "ctranslate2:greedy", "beam1")
        )
    assert iad == peer == greedy != stock
    with Runs(subject_of(toy_model_dir, LONG)) as runs:
        assert outputs(runs, "greedy", 2) == outputs(runs, "beam1", 2) == stock


def test_the_record_says_how_was_searched_and_sources_are_cut_as_fairseq_cuts_them(
    toy_model_dir: ToyModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, cut = (subject_of(toy_model_dir, options).sentences for options in ("", CUT))
    assert [list(sentence) for sentence in cut] == [
        [*sentence[:-1][:8], whole[0][-1]] for sentence in whole
    ]
    with refused_with(r"more than --max-source-positions 9: add"):
        subject_of(toy_model_dir, "--max-source-positions 9")
    options = f"{SEARCH} {NGRAMS} {CUT}"
    path = tmp_path / "bench.json"
    line = f"{toy_model_dir.data} --path {toy_model_dir.checkpoint} --limit 12 --modes greedy,iad --no-memory {options}"
    aggdec(["bench", *line.split(), "--repeats", "1", "--json", str(path)])
    content = json.loads(path.read_text())
    search = {"lenpen": 2.0, "unkpen": 0.5, "max_len_a": 0.5, "max_len_b": 6}
    search |= {"min_len": 4, "no_repeat_ngram_size": 2, "block_ngrams": True}
    search |= {"truncate_source": True, "max_source_positions": 9}
    assert content["search"] == search
    assert options in content["command"]
    said = "\nsearch: --lenpen 2 --unkpen 0.5 --max-len-a 0.5 --max-len-b 6 --min-len 4"
    assert said in capsys.readouterr().out
    assert content["source_tokens"] == sum(map(len, cut))


@pytest.mark.parametrize(
    "options, reason",
    [
        ("--unkpen 1 --peers ctranslate2:greedy", "greedy cannot honour --unkpen: lea"),
        ("--no-repeat-ngram-size 3 --peers ctranslate2", "bans .*add --block-ngrams"),
        ("--lenpen 2 --min-len 5 --nat-peer x=y", "x cannot honour --lenpen, --min-"),
    ],
)
def test_what_a_peer_cannot_honour_is_refused_before_anything_is_loaded(
    options: str, reason: str
) -> None:
    with refused_with(reason):
        aggdec(["bench", "DATA", "--path", "x", *options.split()])
