from pathlib import Path

import pytest

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.bench.random_models import RandomModel
from tests.lab.tune.conftest import tuned  # noqa: F401  (a fixture)


def test_the_table_and_the_choice(
    tuned: RandomModel,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / "points.json"
    arguments = ["tune", str(tuned.folder), "--path", str(tuned.checkpoint), "--drafter-path", str(tuned.drafter)]
    arguments += ["--block-sizes", "4,8", "--betas", "3", "--tolerances", "1,2", "--repeats", "1", "--limit", "2"]
    arguments += ["--output", str(output), "--metric", "exact", "--beam", "2", "--batch-size", "2"]
    aggdec(arguments)
    printed = capsys.readouterr().out
    assert "| beam 2 " in printed
    assert "| gad++  | 4   | 3   | 1 " in printed
    assert "high-quality" in printed
    assert output.read_text().count('"setting"') == 3  # two block sizes, then the other tolerance with the faster one
    with pytest.raises(AggdecError, match=r"measured under other conditions \(sentences: 3 now, 2 there"):
        aggdec([*arguments, "--limit", "3"])
