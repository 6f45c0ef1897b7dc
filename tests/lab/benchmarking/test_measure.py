"""The whole benchmark on a tiny model: every number of its tables, from the raw rounds in its JSON."""

import json
import re
from contextlib import redirect_stdout
from io import StringIO
from statistics import median
from typing import Any

import numpy as np
import pytest

from fairseq_aggdec.cli.bench import main
from fairseq_aggdec.models import sizes
from tests.lab.benchmarking.tiny import TINY

MODES = ["beam2", "beam1", "greedy", "iad", "gad", "greedy@bf16", "iad@bf16"]
SENTENCES, SIZES, REPEATS = 4, [1, 2], 2


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    """The JSON's content and what was printed."""
    out = tmp_path_factory.mktemp("bench") / "out.json"
    options = f"--random-model base --limit {SENTENCES} --length 8 --block-size 6 --repeats {REPEATS} --batch-sizes 1,2"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sizes.SIZES, "base", TINY)
        with redirect_stdout(StringIO()) as printed:
            main([*options.split(), "--no-memory", "--modes", ",".join(MODES), "--json", str(out)])
    return json.loads(out.read_text()), printed.getvalue()


def tables(text: str) -> list[list[dict[str, str]]]:
    """The Markdown tables of a text, rows by header."""
    found: list[list[dict[str, str]]] = []
    headers: list[str] | None = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            headers = None
        elif headers is None:
            headers = cells
            found.append([])
        elif not set(line) <= set("|-"):
            found[-1].append(dict(zip(headers, cells, strict=True)))
    return found


def test_every_number_of_the_tables_is_arithmetic_on_the_raw_times(measured: tuple[dict[str, Any], str]) -> None:
    content, text = measured
    for run in content["runs"]:
        assert sorted(number for batch in run["batches"] for number in batch) == list(range(SENTENCES))
        assert max(len(batch) for batch in run["batches"]) == run["batch_size"]
        assert [len(latencies) for latencies in run["latencies"]] == [len(run["batches"])] * REPEATS
    found = tables(text)
    assert len(found) == 3 * len(SIZES)
    for size, (speed, ratios, modules) in zip(SIZES, zip(*[iter(found)] * 3, strict=True), strict=True):
        runs = {run["mode"]: run for run in content["runs"] if run["batch_size"] == size}
        totals = {mode: [sum(latencies) for latencies in run["latencies"]] for mode, run in runs.items()}
        seconds = {mode: median(rounds) for mode, rounds in totals.items()}
        assert [row["mode"] for row in speed] == [row["mode"] for row in ratios] == MODES
        for row in speed:
            run, rounds = runs[row["mode"]], totals[row["mode"]]
            digits = 2 if median(rounds) >= 0.1 else 4
            low, high = (f"{most(rounds):.{digits}f}" for most in (min, max))
            waits = {
                number: median(latencies[place] for latencies in run["latencies"])
                for place, batch in enumerate(run["batches"])
                for number in batch
            }
            expected = {
                "mode": row["mode"],
                "seconds (median, range)": f"{median(rounds):.{digits}f} ({low}-{high})",
                "tokens per second": f"{sum(run['tokens']) / median(rounds):.0f}",
                "identical to greedy": "",
            }
            for baseline in ("beam1", "greedy"):
                expected[f"speed-up over {baseline}"] = f"{seconds[baseline] / median(rounds):.2f}x"
            for share in (50, 95, 99):
                expected[f"p{share} ms"] = f"{1e3 * np.percentile(list(waits.values()), share):.1f}"
            iterations = run["iterations"]
            expected["iterations per sentence"] = f"{sum(iterations) / SENTENCES:.2f}" if iterations else ""
            expected["mean accepted tokens"] = f"{sum(run['tokens']) / sum(iterations):.2f}" if iterations else ""
            greedy = runs["greedy@bf16" if run["precision"] == "bf16" else "greedy"]["outputs"]
            same = sum(mine == theirs for mine, theirs in zip(run["outputs"], greedy, strict=True))
            expected["identical to greedy"] = f"{same} of {SENTENCES}"
            longest = run["longest_draft"]
            assert (longest is None) == (run["implementation"] == "fairseq")
            if any(other["longest_draft"] for other in runs.values()):
                expected["longest draft"] = str(longest or "")
            assert row == expected
        for row in ratios:
            assert row == {"mode": row["mode"]} | {
                f"over {other}": f"{seconds[other] / seconds[row['mode']]:.2f}x" for other in MODES
            }
        assert [row["mode"] for row in modules] == [mode for mode in MODES if not mode.startswith("beam")]
        for row in modules:
            times = runs[row["mode"]]["modules"]
            assert "verifier's decoder" in times
            for module, time in times.items():
                assert row[module] == f"{1e3 * time / SENTENCES:.2f} ({time / sum(times.values()):.0%})"


def test_lossless_modes_say_what_greedy_says(measured: tuple[dict[str, Any], str]) -> None:
    runs = {(run["mode"], run["batch_size"]): run for run in measured[0]["runs"]}
    for size in SIZES:
        greedy = runs["greedy", size]
        assert greedy["tokens"] == [9] * SENTENCES
        assert greedy["iterations"] == greedy["tokens"]
        for mode in ("beam1", "iad", "gad"):
            assert runs[mode, size]["outputs"] == greedy["outputs"]
        assert runs["iad@bf16", size]["outputs"] == runs["greedy@bf16", size]["outputs"]
        drafts = size == 1  # in a batch of so small a model a draft does not pay
        assert (sum(runs["gad", size]["iterations"]) < sum(greedy["iterations"])) == drafts
        assert runs["gad", size]["longest_draft"] == (6 if drafts else 0)
        assert all(a <= d for run in (runs["gad", size],) for a, d in zip(run["accepted"], run["drafted"], strict=True))


def test_header_names_machine_versions_commit_and_command(measured: tuple[dict[str, Any], str]) -> None:
    content, text = measured
    assert "command: aggdec bench --random-model base --limit 4" in text
    assert re.search(r"torch \d+\.\d+", text)
    assert f"commit {content['commit'] or 'unknown'}, {content['date']}" in text
    assert content["source_tokens"] == [9] * SENTENCES
    assert len(content["edit_ratios"]) == SENTENCES
