"""The small experiments whose data come in many forms: real files, few lines of them."""

from itertools import islice
from pathlib import Path

import pytest
from experiments.text_files import read_lines

from fairseq_aggdec.cli.verbs import main as aggdec
from tests.configs.experiments.preparing import ROOT, experiment, prepare, write_gzipped


def test_ukrainian_correction_to_scores_of_gold_edits(
    tmp_path: Path, aggdec_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the published files to a table of scores; what seems to be decoded is the source."""
    given = aggdec_data / "ua-gec"
    work = tmp_path / "work"
    train = list(islice(read_lines(given / "train.a1+a2.src-tgt.tsv.gz"), 300))
    # the last block is cut short
    gold = list(islice(read_lines(given / "gec-only.test.m2.gz"), 59))
    write_gzipped(tmp_path / "ua-gec/train.a1+a2.src-tgt.tsv.gz", train)
    write_gzipped(tmp_path / "ua-gec/gec-only.test.m2.gz", gold)
    prepare(
        experiment("ua_gec_small", HELD_OUT={"valid": 20}, SYMBOLS=300), tmp_path, work
    )
    tokens = (work / "tok/test.src").read_text().splitlines()
    assert [f"S {line}" for line in tokens] == [
        line for line in gold if line.startswith("S ")
    ]
    subwords = (work / "bpe/test.src").read_text().splitlines()
    (work / "decode/test/iad").mkdir(parents=True)
    lines = [f"H-{number}\t-1\t{line}" for number, line in enumerate(subwords)]
    (work / "decode/test/iad/generate-test.txt").write_text(
        "\n".join([*lines, "Generate test with beam=1"]) + "\n"
    )
    capsys.readouterr()
    config = str(ROOT / "configs/ua_gec_small/prepare.py")
    aggdec(
        ["score", "experiment", config, "--data", str(tmp_path), "--work", str(work)]
    )
    rows = {line.split("  ")[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "M2 F0.5" in rows[f"test ({len(tokens)})"]
    # no edit is wrong, none is found
    assert rows["source, unchanged"].split()[2:5] == ["100.00", "0.00", "0.00"]
    assert rows["iad"].split()[1:] == rows["source, unchanged"].split()[2:]
