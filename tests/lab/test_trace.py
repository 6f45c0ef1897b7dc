"""Traces of decoded sentences."""

import json
from pathlib import Path

import pytest

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.decoding.stats import SentenceStats
from fairseq_aggdec.decoding.tokens import Decoded
from fairseq_aggdec.generation.stats_file import StatsFile
from fairseq_aggdec.lab.trace import read_traces, text
from tests.support.helpers import refused_with

# a bifurcation, a step without a draft, a bonus token, and a draft that has the end
STATS = SentenceStats(
    drafted=[4, 0, 2, 2], accepted=[1, 0, 2, 2], committed=[2, 1, 3, 2]
)
TEXT = {
    "source": ["A@@", "x", "<b>"],
    "output": ["a", "<i>", "c", "d", "e", "\033[31mf", "g", "</s>"],
    "drafts": [["a", "b & b", "q", "</s>"], [], ["d", "e"], ["g", "</s>"]],
}


@pytest.fixture
def stats(tmp_path: Path) -> Path:
    path = tmp_path / "gad.jsonl"
    file = StatsFile(str(path))
    for number in (7, 2):
        file.write(number, [4, 5], Decoded([4, 5, 6, 2], [], STATS), 0.1, TEXT)
    return path


def test_on_the_terminal(stats: Path, capsys: pytest.CaptureFixture[str]) -> None:
    aggdec(["report", "trace", str(stats), "--sentences", "7"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:] == [
        "== gad",
        "",
        "7: 8 tokens in 4 iterations, 2.00 an iteration; 8 drafted, 5 of them accepted",
        "  source  A@@ x <b>",
        "       1  [a] <i> /b & b q </s>/  (bifurcation: 1 of 4 drafted tokens accepted)",
        "       2  c  (re-decoded: a single step without a draft)",
        "       3  [d e] �[31mf  (2 of 2 drafted tokens accepted, and a bonus token)",
        "       4  [g </s>]  (2 of 2 drafted tokens accepted, to the end of the sentence)",
        "  output  a <i> c d e �[31mf g </s>",
    ]
    in_colour = text({"gad": read_traces(stats)}, colour=True)
    for piece in (
        "\033[34ma\033[0m \033[1;31m<i>\033[0m",
        "\033[33mc\033[0m",
        "\033[32m�[31mf\033[0m",
    ):
        assert piece in in_colour


def test_numbers_choose_sentences_and_what_is_wrong_is_said(stats: Path) -> None:
    assert [trace.number for trace in read_traces(stats)] == [2, 7]
    assert [trace.number for trace in read_traces(stats, limit=1)] == [2]
    with refused_with(r"gad.jsonl: has no sentences 3, 9"):
        aggdec(["report", "trace", str(stats), "--sentences", "2,3,9"])
    record = json.loads(stats.read_text("utf-8").splitlines()[0])
    stats.write_text(
        json.dumps(record | {"committed_per_iteration": [2, 1, 3, 3]}) + "\n",
        "utf-8",
    )
    with refused_with(r"l, line 1: not of .*counters do not fit"):
        aggdec(["report", "trace", str(stats)])
    without = Decoded([4, 2], [], SentenceStats([1], [1], [1]))
    StatsFile(str(stats)).write(1, [4], without, None)
    with refused_with(r"line 1: has no drafts; decode with .*--reta"):
        aggdec(["report", "trace", str(stats)])
