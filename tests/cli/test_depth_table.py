"""The table of depths from what decoding and the benchmark have left."""

import json
from pathlib import Path

import pytest

from fairseq_aggdec.cli import depth_table
from fairseq_aggdec.errors import AggdecError

SOURCE, RIGHT = ["a x c", "d e f g"], ["a b c", "d e f g"]
MODES, COLUMNS = ("beam 5", "greedy"), ("GLEU", "equals a reference %", "F0.5 (references)")
SECONDS = {"6-6": {"beam5": 8.0, "greedy": 4.0, "iad": 2.0}, "9-3": {"beam5": 6.0, "greedy": 2.0, "iad": 0.5}}


def write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines))


def make(folder: Path, outputs: dict[str, list[str]], change: str = "") -> Path:
    """A work folder with models of two depths; returns the configuration."""
    languages = "{source: src, target: tgt}"
    write(folder / "prepare.yaml", [f"languages: {languages}", "test_sets: [{name: jfleg}]", "score: [gleu, exact]"])
    for kind in ("text", "tok"):
        write(folder / kind / "jfleg.src", SOURCE)
        write(folder / kind / "jfleg.ref0", RIGHT)
        write(folder / kind / "jfleg.ref1", RIGHT)
    for name, times in SECONDS.items():
        for mode in ("beam5", "greedy"):
            lines = []
            for number, output in enumerate(outputs[mode]):
                lines += [f"S-{number}\t{SOURCE[number]}", f"H-{number}\t-0.1\t{output}", f"P-{number}\t-0.1"]
            write(
                folder / f"decode/test1/depth-{name}-{mode}/generate-test1.txt", [*lines, "Generate test1 with beam=5"]
            )
        runs = []
        for mode, seconds in times.items():
            other = mode == "iad" and change == "output"
            runs.append(
                {
                    "mode": mode, "implementation": "x", "precision": "fp32", "batch_size": 1, "batches": [[0], [1]],
                    "latencies": [[seconds / 2, seconds / 2]], "tokens": [4, 5],
                    "outputs": ["o", "other" if other else "p"], "iterations": [2, 1] if mode == "iad" else None,
                    "drafted": None, "accepted": None, "bleu": None, "modules": None, "host_bytes": None,
                    "device_bytes": None,
                }
            )  # fmt: skip
        if change == "mode":
            runs.pop()
        record = {
            "title": "t", "command": "c", "date": "d", "commit": None,
            "source_tokens": [4, 5], "edit_ratios": [0.3, 0.0],
            "runs": runs, "format": 2,
            "machine": {"cpu": "a CPU", "cores": 2, "threads": 2, "python": "3", "torch": "2", "fairseq": "0"},
        }  # fmt: skip
        write(folder / f"bench/depth-{name}.json", [json.dumps(record)])
    return folder / "prepare.yaml"


def test_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        depth_table, "machines_of", lambda records: " / ".join({record.machine["cpu"] for record in records})
    )
    config = make(tmp_path, {"beam5": RIGHT, "greedy": SOURCE})
    arguments = [str(config), "6-6", "9-3", "--work", str(tmp_path), "--subset", "test1"]
    depth_table.main(
        [*arguments, "--metrics", "gleu,exact,m2-references", "--output", str(tmp_path / "depth/table.md")]
    )
    text = capsys.readouterr().out
    assert (tmp_path / "depth/table.md").read_text() == text
    assert text.startswith("Scores of 2 sentences; times of the first 2 of them, batch size 1; a CPU\n")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    assert rows[0][:7] == ["encoder + decoder", *(f"{name}, {mode}" for mode in MODES for name in COLUMNS)]
    first, second = (dict(zip(rows[0][7:], row[7:], strict=True)) for row in rows[2:])
    assert [row[0] for row in rows[2:]] == ["6+6", "9+3"]
    assert rows[2][1:4] == ["100.00", "100.00", "100.00"]
    assert float(rows[2][4]) < 100
    assert rows[2][5:7] == ["50.00", "0.00"]
    assert (first["beam 5, s"], second["greedy, s"], second["IAD, s"]) == ("8.00", "2.00", "0.50")
    assert first["greedy over 6+6 greedy"] == "1.00x"
    assert rows[3][7:] == ["6.00", "2.00", "2.00x", "0.50", "8.00x", "16.00x", "1.50"]
    depth_table.main(arguments)  # the first of the experiment's metrics alone
    assert "equals" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "change", "message"),
    [
        (["11-1", "--subset", "test1"], "", "depth-11-1.json: no such file; run the stage"),
        (["9-3", "--subset", "test7"], "", "--subset test7: choose from valid, test, test1"),
        (["9-3", "--subset", "test1"], "output", "iad gave 1 sentences that greedy did not give"),
        (["9-3", "--subset", "test1"], "mode", "there is no iad"),
    ],
)
def test_refused(arguments: list[str], change: str, message: str, tmp_path: Path) -> None:
    config = make(tmp_path, {"beam5": RIGHT, "greedy": RIGHT}, change)
    with pytest.raises(AggdecError, match=message):
        depth_table.main([str(config), *arguments, "--work", str(tmp_path)])


def test_a_model_that_is_not_decoded(tmp_path: Path) -> None:
    config = make(tmp_path, {"beam5": RIGHT, "greedy": RIGHT})
    (tmp_path / "decode/test1/depth-9-3-greedy/generate-test1.txt").unlink()
    with pytest.raises(AggdecError, match=r"generate-test1.txt: no such file"):
        depth_table.main([str(config), "9-3", "--work", str(tmp_path), "--subset", "test1"])
