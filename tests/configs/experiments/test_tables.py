"""Tables of experiments, from work folders with made-up logs, outputs and measurements."""

import json
import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest
from experiments.results import Results
from experiments.tables import beside

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.bench.record import load_record
from tests.lab.bench.tiny import made_up_record, made_up_run

CONFIGS = Path(__file__).resolve().parents[3] / "configs"
STAMP = "[2026-11-21 03:07:09,449]"


def trained(update: int, seconds: int) -> str:
    return (
        f"{STAMP}[train_inner][INFO] - epoch 001:    {update} / 1073 loss=3.163, nll_loss=1.649, glanced=0.067, "
        f"wps=6669, num_updates={update}, lr=1e-05, gnorm=0.952, clip=37, train_wall={seconds}, wall=227\n"
    )


def validated(update: int, accepted: float, rest: str = "") -> str:
    return (
        f"{STAMP}[valid][INFO] - epoch 001 | valid on 'valid' subset | loss 4.572 | nll_loss 3.242 | "
        f"accepted {accepted} | acc_1 0.88 | acc_10 0.262 | wps 20993.4 | bsz 250 | num_updates {update}{rest}\n"
    )


def tables_of(text: str) -> dict[str, list[list[str]]]:
    """Cells of each table of a page, by the first words of its heading."""
    found = {}
    for part in text.split("\n## ")[1:]:
        lines = [line for line in part.splitlines() if line.startswith("|")]
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        found[part.partition("\n")[0].partition(":")[0]] = rows
    return found


def page(
    capsys: pytest.CaptureFixture[str],
    work: Path,
    *options: object,
    experiment: str = "tatoeba_en_de",
) -> str:
    aggdec(
        [
            "report",
            "experiment",
            str(CONFIGS / experiment),
            "--work",
            str(work),
            *map(str, options),
        ]
    )
    return capsys.readouterr().out


def write(work: Path, files: dict[str, list[str]]) -> None:
    """Lines of files in a work folder, by their names."""
    for name, lines in files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("".join(line + "\n" for line in lines))


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """The work folder of a pair: four sentences of 44 tokens were timed, two decoded."""
    work = tmp_path / "work/tatoeba_en_de"
    modules = {"verifier's encoder": 0.1, "drafter": 0.3, "rest": 0.1}
    runs = [
        made_up_run("beam5", 0.4),
        made_up_run("gad", 0.1, iterations=10, drafted=48, accepted=24),
        made_up_run("gad++:5:3", 0.08, iterations=8, modules=modules),
    ]
    files = {
        f"{kind}/test.{side}": ["a b c d", "e f g h"]
        for kind in ("tok", "text")
        for side in ("en", "de")
    }
    files |= {
        f"decode/test/gad/{name}": lines
        for name, lines in {
            "stats.jsonl": [
                json.dumps({"iterations": 5, "output_length": 9, "seconds": 1.5})
            ]
            * 2,
            "command.txt": [f"fairseq-generate {work}/data-bin"],
            "generate-test.txt": [
                "H-0\t-1\ta b c d",
                "H-1\t-1\te f g h",
                "Generate test with beam=1",
            ],
        }.items()
    }
    write(work, files)
    (work / "bench").mkdir()
    made_up_record(runs).save(work / "bench/bench.json")
    return work


def test_numbers_stand_beside_the_papers(
    pair: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = page(capsys, pair)
    header, _, *rows = tables_of(text)["Ge et al. 2022, Table 5"]
    assert header[:4] == ["system", "Iter. (a sentence), paper", "ours", "ratio"]
    by_name = {row[0]: row[1:] for row in rows}
    gad = by_name["GAD (k = 25)"]
    assert gad[:9] == [
        "4.9",
        "5.0",
        "1.02",
        "3.0",
        "4.0",
        "1.33",
        "28.73",
        "100.00",
        "3.48",
    ], "counted on the whole set"
    assert gad[-1].startswith("verifier of 4+3 layers of 256; drafter with k = 10")
    levt = by_name["LevT"]
    assert (levt[1:3], levt[-1]) == (["–", "–"], ""), "rows that were not measured stay"
    quoted = text.partition("quoted from the paper: ")[2].partition("\n")[0]
    assert "DSLP; " in quoted, "another author's"
    assert "LevT" not in quoted
    assert "(test: 2 sentences)" in text
    assert "Nothing has been measured yet of ge2022/" in text
    assert (
        "fairseq-generate work/tatoeba_en_de/data-bin"
        in text.partition("## Commands")[2].splitlines()
    )
    only = page(capsys, pair, "--table", "ge2022/15", "--format", "latex")
    assert r"\begin{tabular}" in only
    assert "Table 5:" not in only


def test_tables_of_full_size_tell_drafts_from_the_engine_have_one_metric_in_a_column_and_tokens_without_eos(
    pair: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [
        made_up_run(mode, seconds)
        for mode, seconds in (("beam5", 0.4), ("greedy", 0.2), ("gad", 0.1))
    ]
    made_up_record(runs).save(pair / "bench/bench.json")
    # timed with sacrebleu's BLEU, where the column is of outputs with hyphens split
    made_up_record([made_up_run("nat", 0.1, bleu=12.5)]).save(
        pair / "bench/baselines.json"
    )
    for label in ("nat", "k30-gad"):
        shutil.copytree(pair / "decode/test/gad", pair / f"decode/test/{label}")
    text = page(capsys, pair, experiment="wmt14_en_de")
    assert (
        "contain what this plugin's engine gains without drafts: rows by `greedy` have that part alone"
        in text
    )
    tables = tables_of(text)
    rows = {row[0]: row for row in tables["Ge et al. 2022, Table 5"]}
    below = [*rows][[*rows].index("AR verifier (beam = 1)") + 1]
    assert [below, *rows[below][4:7]] == [
        "AR verifier (beam = 1), by `greedy`",
        "1.1",
        "2.0",
        "1.82",
    ]
    nat = rows["NAT with fertility"]
    assert (nat[8], nat[-1]) == ("100.00", "no fertilities")
    # the papers' published code stops counting before EOS: 9 tokens in 5 iterations
    assert ["GAD-base", "5.53", "1.80"] in [
        row[:3] for row in tables["Ge et al. 2022, Table 9"]
    ]


def test_drafters_that_learned_from_references_are_said_to(
    pair: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = "trained on references, not distilled"
    write(pair, {"drafter/targets": [targets]})
    rows = tables_of(page(capsys, pair, experiment="help_en_de_base"))[
        "Ge et al. 2022, Table 5"
    ]
    assert "GAD (k = 25)" in {
        row[0] for row in rows if row[-1].endswith(f", {targets}")
    }
    monkeypatch.chdir(pair.parents[1])
    runpy.run_path(str(CONFIGS.parent / "scripts/evidence.py"))["main"](
        pair, [pair.name]
    )
    assert json.loads((pair / "evidence.json").read_text())["targets"] == {
        f"{pair.name}/drafter": targets
    }


def test_rouge_l_of_summaries_is_that_of_sentences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of files2rouge, which does not mind their order: 1 here, where that of the whole texts is 0.5."""
    reference = ["the cat sleeps . the dog runs ."]
    files = dict.fromkeys(
        ["tok/test.source", "tok/test.target", "text/test.target"], reference
    )
    files["decode/test/gad/generate-test.txt"] = [
        "H-0\t-1\tthe dog runs . the cat sleeps .",
        "Generate test",
    ]
    write(tmp_path, files)
    rows = tables_of(page(capsys, tmp_path, experiment="scitldr"))[
        "Ge et al. 2022, Table 10"
    ]
    assert ["GAD (k = 25)", "39.96", "100.00"] in [[row[0], *row[8:10]] for row in rows]


def test_shortened_results_are_named(
    pair: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On pages of full size, of stand-ins and of own tables; but not the marks of results that were deleted."""
    for name in (
        "a-deleted-file",
        "decode/test/gad/generate-test.txt",
        "bench/bench.json",
    ):
        (pair / f"{name}.shortened").write_text("UPDATES=6\n")
    said = "Shortened, not the papers' training or not all of their sentences: UPDATES=6 of bench/bench.json, decode/"
    whole = page(capsys, pair, experiment="wmt14_en_de")
    assert said in whole
    assert "papers' data and model sizes" not in whole
    assert said in page(capsys, pair)
    assert said in page(capsys, pair, "--table", "papers_drafter")


def test_half_precision_has_tables_of_its_own(
    pair: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(pair / "decode/test/gad", pair / "decode/test/gad-fp16")
    made_up_record([made_up_run("beam5", 0.6), made_up_run("gad", 0.1)]).save(
        pair / "bench/bench-fp16.json"
    )
    single, half = page(capsys, pair, "--table", "ge2022/5").split(
        "Ge et al. 2022, Table 5: "
    )[1:]
    assert "Ours: in half precision; " in half.partition("\n|")[0]
    speeds = [
        next(line for line in part.splitlines() if line.startswith("| GAD (k = 25)"))
        for part in (single, half)
    ]
    assert [line.split("|")[6].strip() for line in speeds] == ["4.0", "6.0"]


def test_sentences_of_a_trace_have_the_numbers_of_its_file(
    pair: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """papers/000 Table 2: speed-ups over greedy decoding, and edit ratios, of sentences that are shown."""
    (pair / "traces").mkdir()
    for name, seconds in (("greedy", [0.4, 0.4]), ("iad", [0.2, 0.05])):
        lines = [
            json.dumps(
                {
                    "id": number,
                    "seconds": taken,
                    "edit_ratio": 0.25,
                    "iterations": 3,
                    "output_length": 9,
                }
            )
            for number, taken in enumerate(seconds)
        ]
        (pair / f"traces/{name}.jsonl").write_text("\n".join(lines) + "\n")
    rows = tables_of(page(capsys, pair, "--table", "examples"))[
        "Sentences of traces/iad.txt, each timed once"
    ]
    assert rows[2:] == [
        ["1", "8.0x", "0.25", "3", "10"],
        ["0", "2.0x", "0.25", "3", "10"],
    ]


def test_unfinished_decodings_do_not_count(pair: Path) -> None:
    results = Results(CONFIGS / "tatoeba_en_de", pair, pair)
    assert results.score("test", "gad")["sacrebleu"] == pytest.approx(100)
    (pair / "decode/test/gad/generate-test.txt").write_text("H-0\t-1\ta b c d\n")
    results = Results(CONFIGS / "tatoeba_en_de", pair, pair)
    assert (
        results.score("test", "gad"),
        results.decoding("test", "gad"),
        results.test_set("test"),
    ) == ({}, None, None)


def test_a_row_that_the_paper_does_not_have_is_refused() -> None:
    with pytest.raises(AggdecError, match=r"table ge2022/5 has no row 'mine': "):
        beside("ge2022/5", {"mine": {"Iter.": 3.0}})


def test_drafters_are_compared_at_the_accepted_length_that_all_reach(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = {
        "causal-r1": [
            trained(100, 10),
            validated(100, 1.0),
            trained(200, 10),
            validated(200, 2.0),
        ],
        # killed after update 200, before it was saved: what was done again counts, once
        "causal-r8": [
            trained(100, 30),
            validated(100, 1.5),
            trained(200, 90),
            validated(200, 1.75),
        ],
    }
    logs["causal-r8"] += [trained(200, 30), validated(200, 1.25)]
    for name, log in logs.items():
        folder = tmp_path / "ablation" / name
        (folder / "train").mkdir(parents=True)
        (folder / "train/hydra_train.log").write_text("".join(log))
    tables = tables_of(page(capsys, tmp_path, "--table", "ablation"))
    # both reach 1.5: the first one halfway between its validations
    assert [row[:5] for row in tables["blocks a sentence (R)"][2:]] == [
        ["causal-r1", "200", "20", "2.00", "15 (to 1.50)"],
        ["causal-r8", "200", "60", "1.50", "30 (to 1.50)"],
    ]
    assert tables["prefix attention"][2][4] == "20 (to 2.00)", "it is alone"
    (tmp_path / "ablation/causal-r8/train/hydra_train.log").write_text(
        trained(100, 30) + validated(150, 1.5)
    )
    with pytest.raises(
        AggdecError,
        match=r"hydra_train\.log: .*no training time at update 150: .*log_interval",
    ):
        page(capsys, tmp_path, "--table", "ablation")


def test_block_sizes_and_their_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "blockwise_table").mkdir()
    for column, size, iterations, seconds in (
        ("regular", 2, [5, 9], 3.0),
        ("both", 4, [3, 5], 1.0),
    ):
        two: dict[str, Any] = {"sentences": 2, "tokens": 20}
        runs = [
            made_up_run("greedy", 4.0, iterations=20, bleu=25.5, **two),
            made_up_run(
                "blockwise", seconds, iterations=sum(iterations), bleu=25.5, **two
            ),
            made_up_run("blockwise:2", seconds, iterations=8, bleu=24.0, **two),
        ]
        made_up_record(runs).save(tmp_path / f"blockwise_table/{column}-{size}.json")
    figures = tmp_path / "scatter.png", tmp_path / "speed.png"
    options = [word for figure in figures for word in ("--figure", figure)]
    text = page(
        capsys,
        tmp_path,
        "--table",
        "blockwise_table",
        *options,
        "--output",
        tmp_path / "t.md",
    )
    assert (tmp_path / "t.md").read_text(encoding="utf-8") == text
    bleu, speed = list(tables_of(text).values())[:2]
    assert bleu[0] == ["k", "regular", "distilled", "fine-tuned", "both"]
    assert bleu[2:] == [
        ["1", "25.50 / 1.00", "–", "–", "–"],
        ["2", "25.50 / 1.50", "–", "–", "–"],
        ["4", "–", "–", "–", "25.50 / 3.00"],
        ["2, top-2", "24.00 / 3.00", "–", "–", "–"],
        ["4, top-2", "–", "–", "–", "24.00 / 3.00"],
    ]
    assert speed[-1] == ["4", "–", "–", "–", "4.00x (3.00)"]
    assert all(figure.read_bytes()[:4] == b"\x89PNG" for figure in figures)


def test_a_lossless_mode_that_said_something_else_is_in_no_table(pair: Path) -> None:
    path = pair / "bench/bench.json"
    record = load_record(path)
    (run,) = (run for run in record.runs if run.mode == "gad")
    run.counts.differing = 1
    record.save(path)
    with pytest.raises(
        AggdecError, match=r"bench/bench, gad: not the output of greedy decoding"
    ):
        aggdec(
            [
                "report",
                "experiment",
                str(CONFIGS / "tatoeba_en_de"),
                "--work",
                str(pair),
            ]
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "--table blocks",
            "--table blocks: no such table in .*tables.py; it has quality, papers_drafter, .*ge2022/5",
        ),
        (
            "--table ablation",
            "ablation: nothing of it has been measured yet; run its stage of tatoeba_en_de first",
        ),
        (
            "--table quality --figure x.pdf",
            "--figure x.pdf: must end with .png or .svg",
        ),
    ],
)
def test_refused(pair: Path, options: str, message: str) -> None:
    with pytest.raises(AggdecError, match=message):
        aggdec(
            [
                "report",
                "experiment",
                str(CONFIGS / "tatoeba_en_de"),
                "--work",
                str(pair),
                *options.split(),
            ]
        )


def test_changes_of_quality_are_against_greedy_and_beam() -> None:
    ours = {
        "AR verifier (beam = 1)": 35.4,
        "AR verifier (beam = 5)": 35.9,
        "GAD++ (k = 25, high-quality)": 35.15,
    }
    rows = {system: {"EN-DE": value} for system, value in ours.items()}
    grid = beside(
        "ge2022/5", rows, greedy="AR verifier (beam = 1)", beam="AR verifier (beam = 5)"
    ).changes()
    assert grid is not None
    found = {row[0]: list(row[1:]) for row in grid.rows}
    assert found["GAD++ (k = 25, high-quality)"] == ["+0.16", "−0.25", "+0.00", "−0.75"]
