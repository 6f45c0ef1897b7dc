from pathlib import Path

import pytest

from fairseq_aggdec.cli import score
from fairseq_aggdec.errors import AggdecError


def write(path: Path, *lines: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return str(path)


def test_gleu_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write(tmp_path / "source", "a b c d e", "p q r s t")
    reference = write(tmp_path / "reference", "a b x d e", "p q r s t")
    score.main(["gleu", "--source", source, "--output", reference, "--reference", reference])
    assert capsys.readouterr().out == "GLEU 100.00\n"
    score.main(["gleu", "--source", source, "--output", source, "--reference", reference, reference])
    assert 0 < float(capsys.readouterr().out.split()[1]) < 100


def test_edit_ratio_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write(tmp_path / "source", "a b c d", "e f")
    output = write(tmp_path / "output", "a b c", "e f")  # 1/4 and 0
    score.main(["edit-ratio", "--source", source, "--output", output])
    assert capsys.readouterr().out == "edit ratio 12.50 %\n"


def test_mismatch_is_refused_with_both_files(tmp_path: Path) -> None:
    source, output = write(tmp_path / "source", "a", "b"), write(tmp_path / "output", "a")
    with pytest.raises(AggdecError, match=r"source has 2 lines, .*output has 1"):
        score.main(["edit-ratio", "--source", source, "--output", output])


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    source, other = write(tmp_path / "source", "a", "b"), tmp_path / "other"
    with pytest.raises(AggdecError, match="other: No such file"):
        score.main(["edit-ratio", "--source", source, "--output", str(other)])
    other.write_bytes(b"a\nb\xe9\n")
    with pytest.raises(AggdecError, match="other, line 2: not valid UTF-8"):
        score.main(["edit-ratio", "--source", source, "--output", str(other)])


CONFIG = """
languages: {source: src, target: tgt}
test_sets: [{name: real}]
score: [gleu, bleu, ter, edit-ratio, unchanged, exact]
"""


def make_experiment(tmp_path: Path) -> tuple[str, Path]:
    config = write(tmp_path / "prepare.yaml", CONFIG)
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
    # Sentence order in the file is fairseq's (by length), subwords are joined before scoring.
    write(work / "decode/test/greedy/generate-test.txt", "H-1\t-1\tp q@@ r s t", "H-0\t-1\ta b x d e@@ f")
    write(work / "decode/test/beam5/generate-test.txt", "H-1\t-1\tp q r s t", "H-0\t-1\ta b x d e f")
    score.main(["experiment", config, "--work", str(work)])
    output = capsys.readouterr().out
    assert "test (2)" in output
    assert "real" not in output  # not decoded
    # metrics, edit ratio (1/6 and 0), unchanged, equal to a reference
    assert row(output, "beam5") == ["100.00", "100.00", "0.00", "8.33", "50.00", "100.00"]
    assert row(output, "source, unchanged")[3:] == ["0.00", "100.00", "50.00"]
    assert float(row(output, "greedy")[0]) < 100


def test_experiment_with_several_references_and_a_skipped_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, work = make_experiment(tmp_path)
    write(work / "decode/test1/iad/generate-test1.txt", "H-1\t-1\tp q r s t")
    score.main(["experiment", config, "--work", str(work)])
    assert row(capsys.readouterr().out, "iad (1 sentences)")[-1] == "100.00"


def test_experiment_without_outputs_says_what_to_run(tmp_path: Path) -> None:
    config, work = make_experiment(tmp_path)
    with pytest.raises(AggdecError, match=r"scripts/decode\.sh"):
        score.main(["experiment", config, "--work", str(work)])


def test_translations_are_scored_as_running_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, work = make_experiment(tmp_path)
    settings = "languages: {source: src, target: tgt}\nscore: [sacrebleu, bleu]\n"
    config = write(tmp_path / "translation.yaml", settings)
    write(work / "text/test.tgt", "a b x, d e f.", "p q r s t?")
    write(work / "decode/test/beam5/generate-test.txt", "H-1\t-1\tp q r s t ?", "H-0\t-1\ta b x , d e f .")
    score.main(["experiment", config, "--work", str(work)])
    output = capsys.readouterr().out
    assert "unchanged" not in output
    assert row(output, "beam5")[0] == "100.00"
    assert float(row(output, "beam5")[1]) < 100


def test_an_unknown_metric_is_refused(tmp_path: Path) -> None:
    config, work = make_experiment(tmp_path)
    write(work / "decode/test/beam5/generate-test.txt", "H-1\t-1\tp q r s t", "H-0\t-1\ta b x d e f")
    config = write(tmp_path / "prepare.yaml", CONFIG.replace("ter", "meteor"))
    with pytest.raises(AggdecError, match="unknown metric 'meteor': choose from sacrebleu, bleu"):
        score.main(["experiment", config, "--work", str(work)])
