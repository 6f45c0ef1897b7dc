"""Results found in an experiment's work folder, and the command that prints them beside the papers."""

import json
from pathlib import Path

import pytest

from fairseq_aggdec.cli.report import main
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.reporting.results import load_results
from tests.lab.benchmarking.tiny import made_up_record, made_up_run

ABOUT = "title: Little\nanswers: [stand-in of big]\ndisk_gb: 1\ngpu_hours: 0\ncpu_hours: 1\n"
PREPARE = "languages: {source: src, target: tgt}\nscore: [bleu]\ntest_sets: [{name: real}]\n"
TABLES = """
score: [edit-ratio]
tables:
  ge2022/4:
    set: test1
    greedy: Transformer (beam = 1)
    columns: {Wikilarge BLEU: BLEU, Wikilarge Speedup: speed-up}
    rows: {Transformer (beam = 5): beam5, Transformer (beam = 1): beam1, Transformer (IAD): iad}
  sun2021/4: {columns: {F0.5: M2 F0.5}, rows: {6+6: greedy}}
"""
STATS = '{"iterations": 2, "drafted": 9, "accepted": 4, "output_length": 5, "seconds": 0.5}\n'


@pytest.fixture
def config(tmp_path: Path) -> Path:
    folder = tmp_path / "configs" / "little"
    folder.mkdir(parents=True)
    for name, text in (("about", ABOUT), ("prepare", PREPARE), ("tables", TABLES)):
        (folder / f"{name}.yaml").write_text(text)
    return folder


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Two sentences of the test set `real` (test1), decoded by three modes and timed."""
    work = tmp_path / "work" / "little"
    for folder in ("tok", "text"):
        (work / folder).mkdir(parents=True)
        for side in ("src", "ref0"):
            (work / folder / f"real.{side}").write_text("a b c d e\np q r s t\n")
    for label, last in (("beam5", "t"), ("beam1", "s"), ("iad", "s")):
        output = work / "decode" / "test1" / label
        output.mkdir(parents=True)
        lines = ["H-0\t-1\ta b c d e", f"H-1\t-1\tp q r s {last}", "Generate test1 with beam=1: BLEU4 = 1"]
        (output / "generate-test1.txt").write_text("\n".join(lines))
    (work / "decode/test1/iad/stats.jsonl").write_text(2 * STATS)
    (work / "decode/test1/iad/command.txt").write_text("fairseq-generate --decoding iad \n")
    runs = [made_up_run("beam5", 0.4), made_up_run("beam1", 0.2), made_up_run("iad", 0.05, iterations=[1, 2, 1, 2])]
    made_up_record(runs).save(work / "bench" / "bench.json")
    (work / "bench" / "other.json").write_text("[]")
    return work


def test_results_and_table(config: Path, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = work / "results.json"
    main(["experiment", str(config), "--work", str(work), "--json", str(stored)])
    text = capsys.readouterr().out
    assert "little is a stand-in" in text
    assert "Nothing has been measured yet of sun2021/4." in text
    (row,) = [line for line in text.splitlines() if line.startswith("| Transformer (IAD) ") and "8.8" in line]
    assert [cell.strip() for cell in row.strip("|").split("|")][-3:] == ["8.8", "8.0", "0.91"]
    (change,) = [line for line in text.splitlines() if line.startswith("| Transformer (beam = 5) ") and "+" in line]
    assert "+1.2" in change  # 91.9 and 90.7 in the paper
    assert "fairseq-generate --decoding iad\naggdec bench DATA --path model.pt\naggdec report experiment" in text

    content = json.loads(stored.read_text())
    assert content["format"] == 2
    assert content["machine"]["versions"]["torch"]
    (scores,) = content["scores"]
    assert (scores["subset"], scores["test_set"], scores["metrics"]) == ("test1", "real", ["bleu", "edit-ratio"])
    results = load_results(stored)
    (decoding,) = results.decodings
    assert (decoding.sentences, decoding.iterations, decoding.tokens, decoding.seconds) == (2, 4, 12, 1.0)
    assert {name: [run.mode for run in record.runs] for name, record in results.records.items()} == {
        "bench/bench": ["beam5", "beam1", "iad"]
    }

    main(["experiment", str(config), "--results", str(stored), "--paper", "ge2022/4", "--format", "latex"])
    text = capsys.readouterr().out
    assert text.startswith("% needs \\usepackage{booktabs}\n% fairseq-generate")
    assert text.count(r"\begin{table}") == 2
    assert "Nothing has been" not in text


def test_what_no_paper_has(config: Path, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["experiment", str(config), "--work", str(work)]
    main([*command, "--own"])
    text = capsys.readouterr().out
    own = text.index("## Scores: real (")
    times = text.index("## Times: bench/bench (")
    assert text.index("## Ge et al. 2022, Table 4") < own < times < text.index("## Commands")

    (config / "tables.yaml").unlink()
    main(command)
    text = capsys.readouterr().out
    assert text.startswith(f"# {config.name}\n\n")
    assert "papers" not in text
    assert len([line for line in text.splitlines() if line.startswith("| iad ")]) == 2
    assert "8.00x" in text


def test_unfinished_decodings_do_not_count(config: Path, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = work / "decode/test1/iad/generate-test1.txt"
    output.write_text(output.read_text().rpartition("\n")[0])
    stored = work / "results.json"
    main(["experiment", str(config), "--work", str(work), "--json", str(stored)])
    results = load_results(stored)
    assert not results.decodings
    assert [row["name"] for row in results.scores[0]["rows"]] == ["source, unchanged", "beam1", "beam5"]


def test_the_folders_above_the_work_folder_may_have_any_name(config: Path, work: Path, tmp_path: Path) -> None:
    below = work.rename(tmp_path / "decode")
    main(["experiment", str(config), "--work", str(below), "--json", str(tmp_path / "results.json")])
    assert list(load_results(tmp_path / "results.json").records) == ["bench/bench"]


def test_what_is_wrong_is_said(config: Path, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["experiment", str(config), "--work", str(work)]
    with pytest.raises(AggdecError, match=r"--paper ge2022/5: .* has no counterparts for ge2022/5; it has ge2022/4"):
        main([*command, "--paper", "ge2022/5"])
    with pytest.raises(AggdecError, match=r"--figure speed\.pdf: must end with \.png or \.svg"):
        main([*command, "--figure", "speed.pdf"])
    monkeypatch.setenv("AGGDEC_WORK", str(tmp_path / "work2"))
    with pytest.raises(AggdecError, match=r"--work .*work2/little: no such folder; run the experiment's stages first"):
        main(["experiment", str(config)])
    (work / "decode/test1/iad/stats.jsonl").write_text(STATS[:30])
    with pytest.raises(AggdecError, match=r"iad/stats.jsonl: not JSON .*; decode again"):
        main(command)
    for option in ("--json", "--output"):  # said before anything is read
        with pytest.raises(AggdecError, match=r"about\.yaml: exists and is another kind of file"):
            main([*command, option, str(config / "about.yaml")])


def test_papers_alone(capsys: pytest.CaptureFixture[str]) -> None:
    main(["paper"])
    listed = capsys.readouterr().out.splitlines()
    assert len(listed) == 33
    assert listed[0].startswith("ge2022/1     IAD of Transformer-big on CoNLL-13")
    main(["paper", "stern2018/2", "ge2022/12", "--format", "latex"])
    text = capsys.readouterr().out
    assert text.count(r"\toprule") == 2
    assert r"k = 10 & 1.10 & 1.40 & 2.04 & 6.79 \\" in text
