"""Tests of `aggdec score`."""

import json
from pathlib import Path

import pytest

from fairseq_aggdec.cli.report import METRICS
from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.lab.score.metrics import all_metrics
from tests.support.helpers import refused_with

M2 = """S a b c d e f
A 2 3|||x|||x|||REQUIRED|||-NONE-|||0

S p q r s t
A -1 -1|||noop|||-NONE-|||REQUIRED|||-NONE-|||0
"""
SOURCE = ("a b c d e f", "p q r s t")
TARGET = ("a b x d e f", "p q r s t")


def write(path: Path, *lines: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines), "utf-8")
    return str(path)


def row(table: str, name: str) -> list[str]:
    (line,) = (line for line in table.splitlines() if line.startswith(name))
    return line[len(name) :].split()


def test_the_help_names_every_metric() -> None:
    assert METRICS.split(", ") == list(all_metrics())


def test_files_against_gold_edits_and_references(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    m2 = write(tmp_path / "gold.m2", M2)
    out = write(tmp_path / "out", "a b x d e f", "p q r s s")
    reference = write(tmp_path / "ref", *TARGET)
    source = write(tmp_path / "src", *SOURCE)
    generated = write(
        tmp_path / "generate-test.txt", "H-1\t-1\tp q@@ r s t", "H-0\t-1\ta b c d e f"
    )
    path = tmp_path / "scores.json"
    options = f"--m2 {m2} --references {reference} --sources {source} --json {path}"
    aggdec(f"score files {out} {generated} {options} --metrics m2,gleu".split())
    output = capsys.readouterr().out
    assert row(output, out)[:3] == ["50.00", "100.00", "55.56"]
    assert row(output, generated)[:3] == ["0.00", "0.00", "0.00"]
    (table,) = json.loads(path.read_text())
    assert table["rows"][0]["scores"]["M2 P"] == 50
    assert table["rows"][0]["sentences"] == 2
    aggdec(f"score files {out} {options}".split())
    heading, *lines = capsys.readouterr().out.splitlines()
    columns = (
        "BLEU, compound BLEU, R-1, SARI, GLEU, M2 F0.5, repetition %, edit ratio %"
    )
    assert all(column in heading for column in columns.split(", "))
    assert (
        "BLEU: of the tokens, case:mixed|eff:no|tok:none|smooth:none|version:"
        in "\n".join(lines)
    ), "what it is"


class Scored:
    """An experiment that is scored."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.work = folder / "work"
        self._folder = folder
        self._capsys = capsys

    def prepare(self, settings: str, **files: tuple[str, ...]) -> None:
        """`files`: by their names, with _ for the point."""
        lines = (
            "from experiments.experiment import Experiment, TestSet",
            f'EXPERIMENT = Experiment(("src", "tgt"), {settings})',
        )
        write(self._folder / "prepare.py", *lines)
        for name, text in files.items():
            for folder in ("tok", "text"):
                write(self.work / folder / name.replace("_", "."), *text)

    def decode(self, subset: str, mode: str, *hypotheses: str) -> None:
        """In fairseq's order, by length; without the first sentences where there are few."""
        lines = [
            f"H-{number}\t-1\t{text}"
            for number, text in zip((1, 0), hypotheses, strict=False)
        ]
        write(self.work / "decode" / subset / mode / f"generate-{subset}.txt", *lines)

    def table(self, options: str = "") -> str:
        folders = f"{self._folder}/prepare.py --work {self.work} --data {self._folder}"
        aggdec(f"score experiment {folders} {options}".split())
        return self._capsys.readouterr().out


@pytest.fixture
def scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Scored:
    return Scored(tmp_path, capsys)


def test_experiment_table(scored: Scored) -> None:
    """Subwords are joined before scoring; a set has one or several references, or none that are published."""
    scored.prepare(
        'score=("gleu", "bleu", "ter", "edit-ratio", "unchanged", "exact"), '
        'test_sets=(TestSet("real"), TestSet("hidden", has_references=False))',
        test_src=SOURCE, test_tgt=TARGET, real_src=SOURCE, real_tgt=("not used", "not used"),
        real_ref0=("z z z z z z", "p q r s t"), real_ref1=("a b x d e f", "z z z z z"),
        hidden_src=("a b c d", "p q r s"), hidden_tgt=("a b c d", "p q r s"),
    )  # fmt: skip
    with refused_with(r"scripts/decode\.sh"):  # nothing is decoded
        scored.table()
    scored.decode("test", "greedy", "p q@@ r s t", "a b x d e@@ f")
    scored.decode("test", "beam5", "p q r s t", "a b x d e f")
    output = scored.table()
    assert "test (2)" in output
    output = output.partition("\nBLEU: ")[0]
    assert "real" not in output, "not decoded"
    # metrics, edit ratio (1/6 and 0), unchanged, equal to a reference
    assert row(output, "beam5") == "100.00 100.00 0.00 8.33 50.00 100.00".split()
    assert row(output, "source, unchanged")[3:] == ["0.00", "100.00", "50.00"]
    assert float(row(output, "greedy")[0]) < 100
    scored.decode("test1", "iad", "p q r s t")
    assert row(scored.table(), "iad (1 sentences)")[-1] == "100.00"
    scored.decode("test2", "gad", "p q@@ r s", "a b c d")
    # edit ratio (2/4 and 0) and unchanged: what needs no reference
    written = scored.work / "outputs"
    assert row(scored.table(), "gad") == ["25.00", "50.00"]
    with refused_with("1 of 2 sentences were not decoded"):
        scored.table(f"--write {written}")
    scored.decode("test1", "iad", "p q r s t", "a b x d e f")
    scored.table(f"--write {written}")
    assert (written / "hidden/gad.txt").read_text() == "a b c d\np qr s\n", (
        "for a scorer elsewhere"
    )


def test_an_experiments_m2_file(scored: Scored, tmp_path: Path) -> None:
    scored.prepare(
        '("m2",), m2={"test": "real.m2"}',
        test_src=SOURCE,
        test_tgt=TARGET,
    )
    scored.decode("test", "iad", "p q r s t", "a b x d e f")
    write(tmp_path / "real.m2", M2)
    assert row(scored.table(f"--json {tmp_path}/scores.json"), "iad") == ["100.00"] * 3
    assert json.loads((tmp_path / "scores.json").read_text())[0]["test_set"] == "test"
    write(tmp_path / "real.m2", M2.replace("S p q", "S pq"))
    with refused_with(
        r"sentence 2 of .*real\.m2 is 'pq r s t', but line 2 of .*test\.src"
    ):
        scored.table()
