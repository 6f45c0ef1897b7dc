import json
from pathlib import Path

import pytest

from fairseq_aggdec.cli.report import METRICS
from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.score.metrics import all_metrics


def write(path: Path, *lines: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return str(path)


def test_the_help_names_every_metric() -> None:
    assert METRICS.split(", ") == list(all_metrics())


IMPORT = "from experiments.experiment import Experiment, TestSet"
CONFIG = f"""
{IMPORT}
METRICS = ("gleu", "bleu", "ter", "edit-ratio", "unchanged", "exact")
EXPERIMENT = Experiment(("src", "tgt"), test_sets=(TestSet("real"),), score=METRICS)
"""


def make_experiment(tmp_path: Path) -> tuple[str, Path]:
    config = write(tmp_path / "prepare.py", CONFIG)
    work = tmp_path / "work"
    sentences = ["a b c d e f", "p q r s t"]
    write(work / "tok/test.src", *sentences)
    write(work / "tok/test.tgt", "a b x d e f", "p q r s t")
    write(work / "tok/real.src", *sentences)
    write(work / "tok/real.tgt", "not used", "not used")
    write(work / "tok/real.ref0", "z z z z z z", "p q r s t")
    write(work / "tok/real.ref1", "a b x d e f", "z z z z z")
    for file in (work / "tok").iterdir():
        write(work / "text" / file.name, *file.read_text().splitlines())
    return config, work


def row(table: str, name: str) -> list[str]:
    (line,) = (line for line in table.splitlines() if line.startswith(name))
    return line[len(name) :].split()


def test_experiment_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, work = make_experiment(tmp_path)
    with pytest.raises(AggdecError, match=r"scripts/decode\.sh"):  # nothing is decoded
        aggdec(["score", "experiment", config, "--work", str(work)])
    # Sentence order in the file is fairseq's (by length), subwords are joined before scoring.
    write(work / "decode/test/greedy/generate-test.txt", "H-1\t-1\tp q@@ r s t", "H-0\t-1\ta b x d e@@ f")
    write(work / "decode/test/beam5/generate-test.txt", "H-1\t-1\tp q r s t", "H-0\t-1\ta b x d e f")
    aggdec(["score", "experiment", config, "--work", str(work)])
    output = capsys.readouterr().out
    assert "test (2)" in output
    output = output.partition("\nBLEU: ")[0]
    assert "real" not in output  # not decoded
    # metrics, edit ratio (1/6 and 0), unchanged, equal to a reference
    assert row(output, "beam5") == ["100.00", "100.00", "0.00", "8.33", "50.00", "100.00"]
    assert row(output, "source, unchanged")[3:] == ["0.00", "100.00", "50.00"]
    assert float(row(output, "greedy")[0]) < 100
    write(work / "decode/test1/iad/generate-test1.txt", "H-1\t-1\tp q r s t")  # without a sentence; two references
    aggdec(["score", "experiment", config, "--work", str(work)])
    assert row(capsys.readouterr().out, "iad (1 sentences)")[-1] == "100.00"


def test_a_test_set_without_references_is_written_for_a_scorer_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, work = make_experiment(tmp_path)
    config = write(tmp_path / "hidden.py", CONFIG.replace('TestSet("real")', 'TestSet("hidden", has_references=False)'))
    for side in ("src", "tgt"):  # as prepared: the sources stand for targets
        write(work / f"tok/hidden.{side}", "a b c d", "p q r s")
    generated = work / "decode/test1/iad/generate-test1.txt"
    write(generated, "H-1\t-1\tp q@@ r s", "H-0\t-1\ta b c d")
    options = ["experiment", config, "--work", str(work), "--write", str(tmp_path / "outputs")]
    aggdec(["score", *options])
    # edit ratio (2/4 and 0) and unchanged: what needs no reference
    assert row(capsys.readouterr().out, "iad") == ["25.00", "50.00"]
    assert (tmp_path / "outputs/hidden/iad.txt").read_text() == "a b c d\np qr s\n"
    write(generated, "H-1\t-1\tp q@@ r s")
    with pytest.raises(AggdecError, match="1 of 2 sentences were not decoded"):
        aggdec(["score", *options])


M2 = """S a b c d e f
A 2 3|||x|||x|||REQUIRED|||-NONE-|||0

S p q r s t
A -1 -1|||noop|||-NONE-|||REQUIRED|||-NONE-|||0
"""


def test_files_against_gold_edits_and_references(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    m2, out = write(tmp_path / "gold.m2", M2), write(tmp_path / "out", "a b x d e f", "p q r s s")
    reference = write(tmp_path / "ref", "a b x d e f", "p q r s t")
    source = write(tmp_path / "src", "a b c d e f", "p q r s t")
    generated = write(tmp_path / "generate-test.txt", "H-1\t-1\tp q@@ r s t", "H-0\t-1\ta b c d e f")
    path = tmp_path / "scores.json"
    options = ["--m2", m2, "--references", reference, "--sources", source, "--json", str(path)]
    aggdec(["score", "files", out, generated, *options, "--metrics", "m2,gleu"])
    output = capsys.readouterr().out
    assert row(output, out)[:3] == ["50.00", "100.00", "55.56"]
    assert row(output, generated)[:3] == ["0.00", "0.00", "0.00"]
    (table,) = json.loads(path.read_text())
    assert table["rows"][0]["scores"]["M2 P"] == 50
    assert table["rows"][0]["sentences"] == 2
    aggdec(["score", "files", out, *options])
    heading, *lines = capsys.readouterr().out.splitlines()
    for column in ("BLEU", "compound BLEU", "R-1", "SARI", "GLEU", "M2 F0.5", "repetition %", "edit ratio %"):
        assert column in heading
    assert "BLEU: of the tokens, case:mixed|eff:no|tok:none|smooth:none|version:" in "\n".join(lines), "what it is"


def test_an_experiments_m2_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, work = make_experiment(tmp_path)
    write(work / "decode/test1/iad/generate-test1.txt", "H-1\t-1\tp q r s t", "H-0\t-1\ta b x d e f")
    write(tmp_path / "data/real.m2", M2)
    settings = 'EXPERIMENT = Experiment(("src", "tgt"), ("m2",), test_sets=(TestSet("real", m2="real.m2"),))'
    config = write(tmp_path / "edits.py", IMPORT, settings)
    path = tmp_path / "scores.json"
    options = ["--work", str(work), "--data", str(tmp_path / "data"), "--json", str(path)]
    aggdec(["score", "experiment", config, *options])
    assert row(capsys.readouterr().out, "iad") == ["100.00"] * 3
    assert json.loads(path.read_text())[0]["test_set"] == "real"
    write(tmp_path / "data/real.m2", M2.replace("S p q", "S pq"))
    with pytest.raises(AggdecError, match=r"sentence 2 of .*real\.m2 is 'pq r s t', but line 2 of .*real\.src"):
        aggdec(["score", "experiment", config, *options])
