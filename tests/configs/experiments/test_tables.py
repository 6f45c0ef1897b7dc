"""Tables of experiments, from work folders with made-up logs, outputs and measurements.

The pages are compared with pages.md beside this file; this writes it anew:

    PYTHONPATH=configs/shared .venv/bin/python -m tests.configs.experiments.test_tables
"""

import json
import re
import runpy
import shutil
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from experiments.results import Results
from experiments.tables import paper_tables

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.lab.bench.record import load_record
from tests.configs.composing import CONFIGS
from tests.lab.bench.tiny import made_up_record, made_up_run
from tests.support.helpers import refused_with

RECORDED = Path(__file__).with_name("pages.md")
PAGES = [
    "tatoeba_en_de --table ge2022/5",
    "tatoeba_en_de --table ge2022/15 --format latex",
    "tatoeba_en_de --table ablation",
    "tatoeba_en_de --table blockwise_table",
    "tatoeba_en_de --table examples",
    "wmt14_en_de --table ge2022/9",
    "help_en_de_base --table ge2022/5",
    "scitldr",
    "sign_digits_sr --table stern2018/2",
]
LATE = "trained on references, not distilled"


def write(work: Path, files: dict[str, list[str]]) -> None:
    """Lines of files in a work folder, by their names."""
    for name, lines in files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("".join(line + "\n" for line in lines))


def trained(update: int, seconds: int, accepted: float) -> list[str]:
    """What the log of a drafter's training says at a validation."""
    stamp = "[2026-11-21 03:07:09,449]"
    return [
        f"{stamp}[train_inner][INFO] - epoch 001: {update} / 1073 loss=3.163, "
        f"num_updates={update}, lr=1e-05, train_wall={seconds}, wall=227",
        f"{stamp}[valid][INFO] - epoch 001 | valid on 'valid' subset | loss 4.572 | "
        f"accepted {accepted} | acc_1 0.88 | num_updates {update}",
    ]


def make_work(folder: Path) -> Path:
    """A work folder with results of a pair, of heads, of an ablation, of a trace and of summaries.

    Four sentences of 44 tokens were timed, two decoded, with 9 tokens and EOS in 5 iterations.
    """
    work = folder / "work/results"
    counts = {"iterations": 5, "output_length": 9, "seconds": 1.5}
    output = {
        "stats.jsonl": [json.dumps(counts)] * 2,
        "command.txt": [f"fairseq-generate {work}/data-bin"],
        "generate-test.txt": [
            "H-0\t-1\tthe dog runs . the cat sleeps .",
            "H-1\t-1\te f g h",
            "Generate test with beam=1",
        ],
    }
    # scripts/decode.sh keeps no counters of fairseq's search
    outputs = {
        f"decode/test/{label}/{name}": lines
        for label in ("gad", "gad-fp16", "nat", "k30-gad", "beam1")
        for name, lines in output.items()
        if label != "beam1" or name != "stats.jsonl"
    }
    reference = ["the cat sleeps . the dog runs .", "e f g h"]
    sides = ("en", "de", "source", "target")
    references = {
        f"{kind}/test.{side}": reference for kind in ("tok", "text") for side in sides
    }
    # killed after update 200, before it was saved: what was done again counts, once
    again = trained(200, 30, 1.25)
    logs = {
        "causal-r1": trained(100, 10, 1.0) + trained(200, 10, 2.0),
        "causal-r8": trained(100, 30, 1.5) + trained(200, 90, 1.75) + again,
    }
    trainings = {
        f"ablation/{name}/train/hydra_train.log": lines for name, lines in logs.items()
    }
    traces = {
        f"traces/{name}.jsonl": [
            json.dumps({"id": number, **counts, "seconds": taken, "edit_ratio": 0.25})
            for number, taken in enumerate(seconds)
        ]
        for name, seconds in {"greedy": [0.4, 0.4], "iad": [0.2, 0.05]}.items()
    }
    write(work, outputs | references | trainings | traces)
    write(work, {"drafter/targets": [LATE]})
    # what was timed
    modules = {"verifier's encoder": 0.1, "drafter": 0.3, "rest": 0.1}
    searches = [
        made_up_run("beam5", 0.4),
        made_up_run("beam1", 0.25),
        made_up_run("greedy", 0.2),
    ]
    gad = made_up_run("gad", 0.1, iterations=10, drafted=48, accepted=24)
    faster = made_up_run("gad++:5:3", 0.08, iterations=8, modules=modules)
    heads = [
        made_up_run("greedy", 4.0, iterations=20, bleu=25.5, sentences=2),
        made_up_run("blockwise", 3.0, iterations=14, bleu=25.5, sentences=2),
        made_up_run("blockwise:2", 3.0, iterations=8, bleu=24.0, sentences=2),
    ]
    for name, runs in {
        "bench/bench": [*searches, gad, faster],
        "bench/bench-fp16": [made_up_run("beam5", 0.6), gad],
        "bench/baselines": [made_up_run("nat", 0.1, bleu=12.5)],
        "blockwise_table/regular-2": heads,
        "blockwise_table/both-4": heads,
        "table/regular-2/record": heads,
    }.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        made_up_record(runs).save(work / f"{name}.json")
    # marks of scripts/stage.sh; that of a deleted result does not count
    for name in ("bench/bench.json", "deleted"):
        write(work, {f"{name}.shortened": ["UPDATES=6"]})
    return work


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return make_work(tmp_path)


def page(work: Path, experiment: str, *options: object) -> str:
    """What `aggdec report experiment` prints."""
    words = [str(CONFIGS / experiment), "--work", work, *options]
    with redirect_stdout(StringIO()) as printed:
        aggdec(["report", "experiment", *map(str, words)])
    return printed.getvalue()


def pages(work: Path) -> str:
    """All of `PAGES`, each after its options, without what aligns columns."""
    texts = (f"<!-- {words} -->\n{page(work, *words.split())}" for words in PAGES)
    return re.sub(r"([ -])\1+", r"\1", "\n".join(texts))


def test_pages_are_as_recorded(work: Path) -> None:
    """What is said of the numbers, rows by `greedy`, ratios, changes of quality, half precision, commands."""
    recorded = RECORDED.read_text("utf-8")
    for text, expected in zip(
        pages(work).split("<!-- "), recorded.split("<!-- "), strict=True
    ):
        assert text == expected


def test_figures_are_drawn(work: Path) -> None:
    figures = [work / "scatter.png", work / "speed.png"]
    options = [word for figure in figures for word in ("--figure", figure)]
    output = work / "t.md"
    table = ["--table", "blockwise_table", *options, "--output", output]
    assert page(work, "tatoeba_en_de", *table) == output.read_text("utf-8")
    assert all(figure.read_bytes()[:4] == b"\x89PNG" for figure in figures)


def test_unfinished_decodings_do_not_count(work: Path) -> None:
    unfinished = Results(CONFIGS / "tatoeba_en_de", work, work)
    assert unfinished.score("test", "gad")
    write(work, {"decode/test/gad/generate-test.txt": ["H-0\t-1\ta b c d"]})
    shutil.rmtree(work / "decode/test/nat")
    unfinished = Results(CONFIGS / "wmt14_en_de", work, work)
    assert unfinished.score("test", "gad") == {}
    assert unfinished.decoding("test", "gad") is None
    assert unfinished.decoding("test", "k30-gad") is not None


def test_the_sentences_that_were_decoded_are_counted_before_any_is_scored(
    work: Path,
) -> None:
    """DECODE_LIMIT had cut a set of three."""
    for file in work.glob("t*/test.*"):  # tok and text
        file.write_text(f"{file.read_text()}a third sentence .\n")
    results = Results(CONFIGS / "tatoeba_en_de", work, work)
    assert results.test_set("test") == ("test", 2)


def test_a_lossless_mode_that_said_something_else_is_in_no_table(work: Path) -> None:
    path = work / "bench/bench.json"
    record = load_record(path)
    (run,) = (run for run in record.runs if run.mode == "gad")
    run.counts.differing = 1
    record.save(path)
    with refused_with(r"bench/bench, gad: not the output of gree"):
        page(work, "tatoeba_en_de")


def test_a_training_without_times_is_named(work: Path) -> None:
    untimed = trained(100, 30, 1.5)[1:]
    write(work, {"ablation/causal-r8/train/hydra_train.log": untimed})
    said = r"hydra_train\.log: .*no training time at update 100: .*log_interval"
    with refused_with(said):
        page(work, "tatoeba_en_de", "--table", "ablation")


def test_evidence_says_what_drafters_learned_from(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(work.parents[1])
    script = runpy.run_path(str(CONFIGS.parent / "scripts/evidence.py"))
    script["main"](work, [work.name])
    evidence = json.loads((work / "evidence.json").read_text())
    assert evidence["targets"] == {"results/drafter": LATE}


@pytest.mark.parametrize(
    "options, message",
    [
        (
            "--table blocks",
            "--table blocks: no such table in .*tables.yaml; it has quality, .*ge2022/5",
        ),
        ("--table quality --figure x.pdf", "--figure x.pdf: must end with .png"),
        ("--figure x.png", "--figure needs --table with one of quality, papers_draf"),
        ("--table ablation", "ablation: nothing of it .* stage of tatoeba_en_de first"),
        ("--table quality", "or name a record .*looked for: bench/baselines.json$"),
        ("", "nothing is decoded or measured there yet; .*: bench/baselines.json, "),
    ],
)
def test_refused(tmp_path: Path, options: str, message: str) -> None:
    with refused_with(message):
        page(tmp_path, "tatoeba_en_de", *options.split())


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (
            {"papers": {"ge2022/12": {"rows": {"mine": "gad"}}}},
            "table ge2022/12 has no row 'mine': ",
        ),
        ({"every_tabel": {}}, "en_de/tables.yaml: every_tabel: .* is every_table$"),
        ({"papers": {"ge2022/5": {"effciency": "5-3"}}}, "effciency: .* is efficiency"),
        (
            {"papers": {"ge2022/5": {"rows": {"GAD (k = 25)": {"recrod": "bench"}}}}},
            "tables.yaml: recrod: nothing reads it; the nearest field is record",
        ),
    ],
)
def test_rows_that_the_paper_lacks_and_misspelt_fields_are_refused(
    declared: dict[str, Any], message: str, work: Path
) -> None:
    results = Results(CONFIGS / "tatoeba_en_de", work, work)
    with refused_with(message):
        paper_tables(results, declared)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        RECORDED.write_text(pages(make_work(Path(folder))), "utf-8")
