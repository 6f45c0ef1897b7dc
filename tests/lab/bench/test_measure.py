"""The whole benchmark on a tiny model: its record, and the tables that it prints from it."""

from contextlib import redirect_stdout
from io import StringIO

import pytest

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.lab.bench.module_times import MODULES
from fairseq_aggdec.lab.bench.record import Record, load_record
from fairseq_aggdec.lab.bench.tables import markdown
from fairseq_aggdec.models import sizes
from tests.lab.bench.tiny import TINY

MODES = ["beam2", "beam1", "greedy", "iad", "gad", "greedy@int8", "iad@int8"]
SENTENCES, SIZES = 4, [1, 2]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Record, str]:
    """The record and what was printed."""
    out = tmp_path_factory.mktemp("bench") / "out.json"
    options = f"--random-model base --limit {SENTENCES} --length 8 --block-size 6 --repeats 2 --batch-sizes 1,2"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sizes.SIZES, "base", TINY)
        with redirect_stdout(StringIO()) as printed:
            aggdec(["bench", *options.split(), "--no-memory", "--modes", ",".join(MODES), "--json", str(out)])
    return load_record(out), printed.getvalue()


def test_the_tables_are_those_of_the_record(measured: tuple[Record, str]) -> None:
    record, text = measured
    assert text.strip() == markdown(record)
    assert [(run.mode, run.batch_size) for run in record.runs] == [(mode, size) for size in SIZES for mode in MODES]
    iad = record.runs[3]
    row = next(line for line in text.splitlines() if line.startswith("| iad "))
    assert f"{record.runs[2].seconds / iad.seconds:.2f}x" in row
    assert f"{1e3 * iad.percentiles['95']:.1f}" in row
    for run in record.runs:
        assert (run.modules is None) == (run.implementation == "fairseq")
        assert run.modules is None or min(run.modules.values()) > 0, "a call within a timed call counts once"
    assert sorted(record.runs[4].modules or ()) == sorted([*MODULES, "rest"])
    assert sum(iad.speed_ups or ()) == SENTENCES


def test_lossless_modes_say_what_greedy_says(measured: tuple[Record, str]) -> None:
    for size in SIZES:
        runs = {run.mode: run for run in measured[0].at(size)}
        greedy, gad = runs["greedy"], runs["gad"]
        assert greedy.tokens == greedy.iterations == 9 * SENTENCES
        for mode in ("beam1", "iad", "gad", "iad@int8"):
            assert (runs[mode].identical, runs[mode].compared_with) == (SENTENCES, runs[mode].precision)
        assert (gad.differing, runs["beam1"].differing) == (0, None)
        drafts = size == 1  # in a batch of so small a model a draft does not pay
        assert ((gad.iterations or 0) < greedy.iterations) == drafts
        assert gad.longest_draft == (6 if drafts else 0)
        assert (gad.accepted or 0) <= (gad.drafted or 0)
