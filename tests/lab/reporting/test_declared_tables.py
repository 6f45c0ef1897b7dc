"""Tables that the experiments declare as their own, from logs, outputs and measurements made up for them."""

import re
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from fairseq_aggdec.cli.report import main
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.benchmarking.record import Record, Run, load_record
from fairseq_aggdec.lab.lossless.differences import Difference
from fairseq_aggdec.lab.reporting.counterparts import read_tables
from tests.lab.benchmarking.heads_records import heads_record, heads_run
from tests.lab.benchmarking.tiny import made_up_record, made_up_run
from tests.lab.evaluation.test_training_log import trained, validated

CONFIGS = Path(__file__).resolve().parents[3] / "configs"
MACHINE = {"processor": "a processor", "threads": 2, "cores": 4, "kernels": "compiled", "versions": {"torch": "2"}}


def tables_of(text: str) -> dict[str, list[list[str]]]:
    """Cells of each table of a page, by its heading."""
    found = {}
    for part in text.split("\n## ")[1:]:
        lines = [line for line in part.splitlines() if line.startswith("|")]
        found[part.partition("\n")[0]] = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return found


def print_table(config: Path, work: Path, name: str, *options: object, capsys: pytest.CaptureFixture[str]) -> str:
    main(["experiment", str(config), "--work", str(work), "--table", name, *map(str, options)])
    return capsys.readouterr().out


def make_drafter(folder: Path, log: list[str], **modules: float) -> None:
    """A training, and ten sentences of twelve tokens that were decoded one by one."""
    (folder / "train").mkdir(parents=True)
    (folder / "train/hydra_train.log").write_text("".join(log))
    runs = []
    for mode, seconds, more in (
        ("greedy", 1.3, {"iterations": [12] * 10}),
        ("gad", 1.0, {"iterations": [4] * 10, "accepted": [8] * 10, "modules": modules}),
    ):
        batches, times = [[number] for number in range(10)], [[seconds / 10] * 10]
        runs.append(Run(mode, "fairseq_aggdec", "fp32", 1, batches, times, [12] * 10, ["f"] * 10, **more))
    Record("test", "aggdec bench", "now", None, MACHINE, [5] * 10, [0.0] * 10, runs).save(folder / "bench.json")


def test_drafters_are_compared_at_the_accepted_length_that_all_of_a_group_reach(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one_block = [trained(100, 10), validated(100, 1.0), trained(200, 10), validated(200, 2.0)]
    eight = [trained(100, 30), validated(100, 1.5), trained(200, 30), validated(200, 1.25)]
    make_drafter(tmp_path / "ablation/causal-r1", one_block, drafter=0.08)
    make_drafter(tmp_path / "ablation/causal-r8", eight, **{"drafter": 0.12, "drafter's encoder": 0.005})
    text = print_table(CONFIGS / "tatoeba_en_de", tmp_path, "ablation", capsys=capsys)
    assert "Times of 10 inputs, batch size 1; a processor, 2 threads of 4 cores; torch 2." in text
    tables = tables_of(text)
    # both reach 1.5: the first one halfway between its validations
    assert tables["blocks a sentence (R)"][2:] == [
        ["causal-r1", "200", "20", "2.00", "15 (to 1.50)", "3.00", "2.00", "0.00", "1.30x"],
        ["causal-r8", "200", "60", "1.50", "30 (to 1.50)", "3.00", "3.00", "0.50", "1.30x"],
    ]
    assert tables["prefix attention"][2][4] == "20 (to 2.00)", "it is alone"
    assert re.search(r"^\| causal-r8 +\| 200 ", text, re.MULTILINE), "cells are texts, aligned to the left"
    assert set(tables) == {"prefix attention", "blocks a sentence (R)", "Commands"}, "of others nothing was measured"


@pytest.fixture
def blocks(tmp_path: Path) -> Path:
    for column, size, iterations, seconds in (
        ("regular", 2, [5, 9], 3.0),
        ("both", 2, [4, 7], 2.0),
        ("both", 4, [3, 5], 1.0),
    ):
        runs = [
            heads_run("greedy", 4.0, [7, 13], [7, 13], 25.5),
            heads_run("blockwise", seconds, [7, 13], iterations, 25.5),
            heads_run("blockwise:2", seconds, [7, 13], [3, 5], 24.0),
        ]
        heads_record(*runs).save(tmp_path / f"blockwise_table/{column}-{size}.json")
    return tmp_path


def test_block_sizes_and_their_figure(blocks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = ["--output", blocks / "table.md", *("--figure", blocks / "scatter.png", "--figure", blocks / "speed.png")]
    text = print_table(CONFIGS / "tatoeba_en_de", blocks, "blockwise_table", *output, capsys=capsys)
    assert (blocks / "table.md").read_text(encoding="utf-8") == text
    quality, speed = list(tables_of(text).values())[:2]
    assert quality[0] == ["k", "regular", "distilled", "fine-tuned", "both"]
    assert quality[2:] == [
        ["1", "25.50 / 1.00", "–", "–", "–"],
        ["2", "25.50 / 1.50", "–", "–", "25.50 / 2.00"],
        ["4", "–", "–", "–", "25.50 / 3.00"],
        ["2, top-2", "24.00 / 3.00", "–", "–", "24.00 / 3.00"],
        ["4, top-2", "–", "–", "–", "24.00 / 3.00"],
    ]
    assert speed[-1] == ["4", "–", "–", "–", "4.00x (3.00)"]
    scatter, speed_of_blocks = ((blocks / name).read_bytes() for name in ("scatter.png", "speed.png"))
    assert scatter[:4] == speed_of_blocks[:4] == b"\x89PNG"
    assert scatter != speed_of_blocks


SOURCE, RIGHT = ["a x c", "d e f g"], ["a b c", "d e f g"]
SECONDS = {"6-6": {"beam5": 8.0, "greedy": 4.0, "iad": 2.0}, "9-3": {"beam5": 6.0, "greedy": 2.0, "iad": 0.5}}


@pytest.fixture
def depths(tmp_path: Path) -> tuple[Path, Path]:
    """A configuration, and a work folder with models of two depths."""
    config, work = tmp_path / "configs/little", tmp_path / "work/little"
    config.mkdir(parents=True)
    for name in ("about", "tables"):
        shutil.copy(CONFIGS / "gec_small" / f"{name}.yaml", config)
    given = 'EXPERIMENT = Experiment(("src", "tgt"), test_sets=(TestSet("jfleg"),), score=("gleu",))'
    (config / "prepare.py").write_text(f"from fairseq_aggdec.data.experiment import Experiment, TestSet\n{given}\n")
    files: dict[str, list[str]] = {}
    for kind in ("text", "tok"):
        files |= {f"{kind}/jfleg.src": SOURCE, f"{kind}/jfleg.ref0": RIGHT, f"{kind}/jfleg.ref1": RIGHT}
    for name, times in SECONDS.items():
        for mode, outputs in (("beam5", RIGHT), ("greedy", SOURCE)):
            lines = [f"H-{number}\t-0.1\t{output}" for number, output in enumerate(outputs)]
            files[f"decode/test1/depth-{name}-{mode}/generate-test1.txt"] = [*lines, "Generate test1 with beam=5"]
        runs = [made_up_run(mode, seconds, sentences=1, iterations=[3]) for mode, seconds in times.items()]
        made_up_record(runs).save(work / f"bench/depth-{name}.json")
    for path, lines in files.items():
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_text("".join(line + "\n" for line in lines))
    return config, work


def test_depths(depths: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    text = print_table(*depths, "depth", "--axis", "subset=test1", capsys=capsys)
    assert "\nScores of 2 sentences; times of the first 1 of them, batch size 1; P, 1 threads" in text
    header, _, *rows = next(iter(tables_of(text).values()))
    scores = [f"{metric}, {mode}" for mode in ("beam 5", "greedy") for metric in ("GLEU", "F0.5 (references)")]
    assert header[:5] == ["encoder + decoder", *scores]
    assert [row[0] for row in rows] == ["6+6", "9+3"]
    assert rows[0][1:3] == ["100.00", "100.00"]
    assert float(rows[0][3]) < 100
    assert rows[0][4] == "0.00"
    first, second = (dict(zip(header[5:], row[5:], strict=True)) for row in rows)
    assert (first["beam 5, s"], second["greedy, s"], second["IAD, s"]) == ("12.00", "3.00", "0.75")
    assert first["greedy over 6+6 greedy"] == "1.00x"
    assert list(second.values()) == ["9.00", "3.00", "2.00x", "0.75", "8.00x", "16.00x", "3.00"]


def test_a_lossless_mode_that_said_something_else_is_in_no_table(depths: tuple[Path, Path]) -> None:
    config, work = depths
    path = work / "bench/depth-9-3.json"
    record = load_record(path)
    run = next(run for run in record.runs if run.mode == "iad")
    run.differences = [asdict(Difference(0, 2, expected=4, found=5, gap=3.0, near_tie=False))]
    record.save(path)
    with pytest.raises(AggdecError, match=r"bench/depth-9-3, iad: not the output of greedy decoding"):
        main(["experiment", str(config), "--work", str(work), "--table", "depth", "--axis", "subset=test1"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "--table blocks",
            "--table blocks: no such table in .*tables.yaml; it has quality, papers_drafter, blockwise_table, ablation",
        ),
        ("--table ablation", "ablation: nothing of it has been measured yet; run its stage of tatoeba_en_de first"),
    ],
)
def test_refused(blocks: Path, options: str, message: str) -> None:
    with pytest.raises(AggdecError, match=message):
        main(["experiment", str(CONFIGS / "tatoeba_en_de"), "--work", str(blocks), *options.split()])


def test_a_row_stands_for_all_values_of_the_axes_in_its_name(tmp_path: Path) -> None:
    text = """
    tables: {}
    own:
      sizes:
        - title: Sizes
          first: model
          axes: {width: [64, 128], encoder-decoder: [6-3, 2-1]}
          columns: {"over {first[width]}": {measure: speed-up, record: "{width}-{encoder}-{decoder}{k}"}}
          rows:
            "{width}, {encoder}+{decoder}": iad
            "deep, {width}": {label: iad, encoder-decoder: 12-6, k: x}
    """
    (tmp_path / "tables.yaml").write_text(text, encoding="utf-8")
    [table] = read_tables(tmp_path, {"width": ["32", "64"]}).own["sizes"]
    records: dict[str, Any] = {row: cell.sources[0].record for (row, _), cell in table.cells.items()}
    assert table.columns == ("over 32",)
    assert records == {
        **{"32, 6+3": "32-6-3", "32, 2+1": "32-2-1", "64, 6+3": "64-6-3", "64, 2+1": "64-2-1"},
        **{"deep, 32": "32-12-6x", "deep, 64": "64-12-6x"},
    }
    with pytest.raises(AggdecError, match=r"tables.yaml: axis encoder-decoder: 6 is not 2 values joined by '-'"):
        read_tables(tmp_path, {"encoder-decoder": ["6"]})
