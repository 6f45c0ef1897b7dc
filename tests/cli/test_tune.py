from pathlib import Path

import pytest

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.errors import AggdecError
from tests.support.helpers import ToyModel


def test_the_table_and_the_choice(
    correction_model: ToyModel,
    correction_drafter: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output, model = (
        tmp_path / "points.json",
        [str(correction_model.data), "--path", str(correction_model.checkpoint)],
    )
    arguments = [
        "tune",
        *model,
        "--drafter-path",
        str(correction_drafter),
        "--output",
        str(output),
    ]
    arguments += "--block-sizes 3,6 --betas 3 --tolerances 1,2 --repeats 1 --limit 2 --metric exact".split()
    arguments += ["--beam", "2", "--batch-size", "2"]
    aggdec(arguments)
    printed = capsys.readouterr().out
    assert "| beam 2 " in printed
    assert "| gad++  | 3   | 3   | 1 " in printed
    assert "high-quality" in printed
    # two block sizes, then the other tolerance with the faster one
    assert output.read_text().count('"search": "gad++"') == 3
    with pytest.raises(
        AggdecError,
        match=r"measured under other conditions \(sentences: 3 now, 2 there",
    ):
        aggdec([*arguments, "--limit", "3"])
