"""Tests of `fairseq_aggdec.lab.benchmarking.tables`."""

from fairseq_aggdec.lab.benchmarking.tables import identical_to_greedy, module_table, speed_table
from tests.lab.benchmarking.tiny import made_up_run


def test_speed_table_is_the_arithmetic_of_the_rounds() -> None:
    beam = made_up_run("beam5", 4.0, sentences=2, latencies=[[1.0, 3.0], [2.0, 4.0], [2.0, 3.0]])
    greedy = made_up_run(
        "greedy", 1.0, sentences=2, latencies=[[1.0, 1.0], [1.0, 1.5], [1.0, 1.0]], iterations=[10, 11]
    )
    headers, rows = speed_table([beam, greedy])
    first, second = (dict(zip((h.replace("\n", " ") for h in headers), row, strict=True)) for row in rows)
    assert first["seconds (median, range)"] == "5.00 (4.00-6.00)"
    assert second["speed-up over beam5"] == "2.50x"
    assert second["speed-up over greedy"] == "1.00x"
    assert first["p50 ms"] == "2500.0"
    assert first["p99 ms"] == "2990.0"
    assert second["tokens per second"] == "10"
    assert (first["iterations per sentence"], second["iterations per sentence"]) == ("", "10.50")
    assert second["mean accepted tokens"] == "1.00"
    assert first["identical to greedy"] == "1 of 2"
    assert "BLEU" not in first
    assert "peak memory MB" not in first


def test_optional_columns_appear_with_their_numbers() -> None:
    runs = [made_up_run("greedy", 1.0, bleu=31.456, host_bytes=1_234_567_890), made_up_run("iad", 1.0)]
    headers, rows = speed_table(runs)
    assert headers[-2:] == ["BLEU", "peak memory\nMB"]
    assert [row[-2:] for row in rows] == [["31.46", "1235"], ["", ""]]
    short, _ = speed_table(runs, short=True)
    assert short[-1] == "BLEU"
    assert not any("p50" in header for header in short)


def test_identity_is_with_greedy_in_the_same_precision() -> None:
    greedy = made_up_run("greedy", 1.0)
    half = made_up_run("greedy@bf16", 1.0, precision="bf16", outputs=["a", "b", "c", "d"])
    iad = made_up_run("iad@bf16", 1.0, precision="bf16", outputs=["a", "b", "c", "x"])
    runs = [greedy, half, iad]
    assert identical_to_greedy(iad, runs) == "3 of 4"
    assert identical_to_greedy(iad, [greedy, iad]) == "0 of 4 (fp32)"
    assert identical_to_greedy(greedy, runs) == "4 of 4"
    assert identical_to_greedy(iad, [iad]) == ""


def test_modules_a_sentence_with_their_share() -> None:
    runs = [
        made_up_run("beam5", 1.0),
        made_up_run("greedy", 1.0, modules={"verifier's decoder": 0.3, "rest": 0.1}),
        made_up_run("gad", 1.0, modules={"verifier's decoder": 0.1, "drafter": 0.08, "rest": 0.02}),
    ]
    headers, rows = module_table(runs)
    assert headers == ["mode", "verifier's decoder", "rest", "drafter"]
    assert rows == [
        ["greedy", "75.00 (75%)", "25.00 (25%)", ""],
        ["gad", "25.00 (50%)", "5.00 (10%)", "20.00 (40%)"],
    ]
