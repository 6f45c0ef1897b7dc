"""Tests of `fairseq_aggdec.lab.reporting.trace`, and of how its segments are printed."""

import io

import pytest

from fairseq_aggdec.decoding.stats import SentenceStats
from fairseq_aggdec.lab.reporting.trace import Segment, segments, wants_colour
from fairseq_aggdec.lab.reporting.trace_text import kept, rejected

# "a b" drafted and accepted, "X" corrected, "c" a single step, "d </s>" drafted with its EOS
STATS = SentenceStats(drafted=[5, 0, 2], accepted=[2, 0, 2], committed=[3, 1, 2])
TOKENS = ["a", "b", "X", "c", "d", "</s>"]


def test_segments_cut_the_output_into_iterations() -> None:
    assert segments(TOKENS, STATS) == [Segment(["a", "b"], ["X"]), Segment([], ["c"]), Segment(["d", "</s>"], [])]


def test_drafted_tokens_are_marked() -> None:
    parts = segments(TOKENS, STATS)
    assert [kept(part, colour=False) for part in parts] == ["[a b] X", "c", "[d </s>]"]
    assert [kept(part, colour=True) for part in parts] == [
        "\033[34ma b\033[0m \033[1;31mX\033[0m",
        "\033[1;31mc\033[0m",
        "\033[34md </s>\033[0m",
    ]


def test_iterations_show_what_was_thrown_away() -> None:
    drafts = [["a", "b", "c", "x", "y"], [], ["d", "</s>"]]
    parts = segments(TOKENS, STATS, drafts)
    assert [part.rejected for part in parts] == [["c", "x", "y"], [], []]
    assert [rejected(part, colour=False) for part in parts] == ["/c x y/", "", ""]
    assert rejected(parts[0], colour=True) == "\033[2;9mc x y\033[0m"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_only_where_they_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert wants_colour("auto", Terminal())
    assert not wants_colour("auto", io.StringIO())
    assert wants_colour("always", io.StringIO())
    assert not wants_colour("never", Terminal())
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_colour("auto", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour("auto", Terminal())
    assert wants_colour("always", Terminal()), "asked for by name"
