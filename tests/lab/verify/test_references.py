"""A lossless mode whose output is another one ends every command that sees it."""

import json
from pathlib import Path

import pytest

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.bench.modes import Mode
from fairseq_aggdec.lab.bench.runs import Runs
from fairseq_aggdec.lab.tune.sweep import Setting, Sweep
from fairseq_aggdec.lab.verify.references import missing_references
from fairseq_aggdec.models.sizes import SIZES
from tests.lab.bench.tiny import TINY, tiny_model, tiny_subject
from tests.support.engine_faults import blocks_see_what_follows, branches_see_each_other

OPTIONS = "--random-model base --limit 4 --length 10 --repeats 1 --no-memory --no-profile".split()


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens of a wide block see those behind them, so that a draft changes what is said before it."""
    blocks_see_what_follows(monkeypatch)


def test_which_modes_promise_greedys_output() -> None:
    names = "greedy iad gad blockwise iad@int8 gad+whole gad++:1:2 gad++:3:0".split()
    assert all(Mode.parse(name).lossless for name in names)
    others = "beam1 nar gad++ gad++:3:1 blockwise:2 ctranslate2:greedy".split()
    assert not any(Mode.parse(name).lossless for name in others)


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        ("beam1,greedy,iad,iad@int8,gad++@exact", ["greedy@int8"]),
        ("aggressive-beam:5:0,aggressive-beam:5", []),
        ("beam4,aggressive-beam:5", ["aggressive-beam:5:0@fp32"]),
        ("beam5,aggressive-beam:5@int8,aggressive-beam:5:64@int8", ["aggressive-beam:5:0@int8"]),
    ],
)
def test_a_reference_in_its_precision_is_added_for_a_lossless_mode(names: str, missing: list[str]) -> None:
    modes = list(map(Mode.parse, names.split(",")))
    added = missing_references(modes, lambda mode: mode.precision or "fp32", "cpu")
    assert [mode.name for mode in added] == missing


@pytest.mark.usefixtures("blind")
def test_the_benchmark_says_what_differs_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Greedy decoding need not be among the modes."""
    monkeypatch.setitem(SIZES, "base", TINY)
    out = tmp_path / "out.json"
    with pytest.raises(AggdecError, match=r"^iad at batch size 1: not the output of greedy decoding"):
        aggdec(["bench", *OPTIONS, "--modes", "iad", "--json", str(out)])
    printed = capsys.readouterr()
    assert "| iad" in printed.out  # what was measured is not lost
    *_, run = json.loads(out.read_text())["runs"]
    assert run["mode"] == "iad"
    assert run["differing"] == sum(line.startswith("iad: sentence ") for line in printed.err.splitlines()) > 0
    assert "log-probabilities differ by " in printed.err


def test_the_benchmark_compares_whole_lists_of_a_beam(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(SIZES, "base", TINY)
    out = tmp_path / "out.json"
    options = [*OPTIONS, "--modes", "beam3,aggressive-beam:3", "--json", str(out)]
    aggdec(["bench", *options])
    stock, ours = json.loads(out.read_text())["runs"]
    assert (stock["differing"], ours["differing"]) == (None, 0)
    assert ours["iterations"] > 0
    branches_see_each_other(monkeypatch)
    with pytest.raises(
        AggdecError, match=r"^aggressive-beam:3 at batch size 1: .*not the n-best lists of fairseq's search"
    ):
        aggdec(["bench", *options])
    assert "where the n-best list of a beam of 3 has" in capsys.readouterr().err


@pytest.mark.usefixtures("blind")
def test_the_demo_fails(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AggdecError, match=r"^iad: not the output of greedy decoding"):
        aggdec(["demo", "She have two brother , and he are my friend in a school .", "--rounds", "1", "--show", "0"])
    assert "iad: sentence 0, position" in capsys.readouterr().err


@pytest.mark.usefixtures("blind")
def test_tuning_fails_where_a_setting_that_accepts_nothing_else_differs(tmp_path: Path) -> None:
    settings = [Setting(8, 1, 1.0), Setting(1, 1, 1.0)]  # the second differs nowhere, and has the name of the first
    with (
        Runs(tiny_subject(tiny_model(tmp_path))) as runs,
        pytest.raises(AggdecError, match=r"gad\+\+:1:1: not the output of greedy decoding"),
    ):
        Sweep({}).measure(tmp_path / "sweep.json", runs, lambda outputs: 0.0, settings, 2, 1, 1)
