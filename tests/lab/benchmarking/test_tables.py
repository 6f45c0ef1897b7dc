"""What `test_measure.py` does not see in the tables of `fairseq_aggdec.lab.benchmarking.tables`."""

from fairseq_aggdec.lab.benchmarking.tables import identical_to_greedy, speed_table
from tests.lab.benchmarking.tiny import made_up_run


def test_optional_columns_appear_with_their_numbers() -> None:
    runs = [made_up_run("greedy", 1.0, bleu=31.456, host_bytes=1_234_567_890), made_up_run("iad", 1.0)]
    headers, rows = speed_table(runs)
    assert headers[-2:] == ["BLEU", "peak memory\nMB"]
    assert [row[-2:] for row in rows] == [["31.46", "1235"], ["", ""]]
    short, _ = speed_table(runs, short=True)
    assert short[-1] == "BLEU"
    assert not any("p50" in header for header in short)


def test_identity_names_another_precision_and_near_ties() -> None:
    assert identical_to_greedy(made_up_run("iad", 1.0, identical=3)) == "3 of 4"
    assert identical_to_greedy(made_up_run("iad@bf16", 1.0, precision="bf16")) == "4 of 4 (fp32)"
    assert identical_to_greedy(made_up_run("iad", 1.0, identical=2, near_ties=2)) == "2 of 4 (2 near-ties)"
    assert identical_to_greedy(made_up_run("iad", 1.0, identical=None)) == ""
