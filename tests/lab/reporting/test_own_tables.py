"""Tables of everything measured, whether or not a paper has a counterpart."""

from fairseq_aggdec.lab.reporting.own_tables import grids_of_everything
from tests.lab.reporting.made_up import made_up_results


def test_times_by_batch_size() -> None:
    _, alone, pairs = grids_of_everything(made_up_results())
    assert (alone.title, pairs.title) == (
        "Times: bench (4 inputs, 1 at a time)",
        "Times: bench (4 inputs, 2 at a time)",
    )
    headings = ["seconds (median, range)", "speed-up over beam5", "speed-up over beam1", "iterations per sentence"]
    headings += ["mean accepted tokens", "identical to greedy", "BLEU"]
    assert [group.heading for group in alone.groups] == headings
    rows = {row[0]: row[1:] for row in alone.rows}
    assert rows["gad"] == ("0.69 (0.46-0.92)", "4.00x", "2.00x", "2.50", "4.60", "–", "33.00")
    assert rows["beam1"][1:] == ("2.00x", "1.00x", "–", "–", "–", "–")
    assert [group.heading for group in pairs.groups] == [headings[0], *headings[3:6]], "no baseline was timed in pairs"
    assert alone.notes == ("P, 1 threads of 2 cores; torch 0; without this plugin's kernels.",)
