"""Files that `aggdec bench` refuses; what it measures: tests/lab/bench."""

from pathlib import Path

import pytest

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.errors import AggdecError
from tests.support.helpers import ToyModel


def test_references_must_fit_the_split(toy_model_dir: ToyModel, tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("one line\n")
    arguments = [str(toy_model_dir.data), "--path", str(toy_model_dir.checkpoint)]
    with pytest.raises(AggdecError, match=r"short.txt has 1 lines, test of .* 60 sentences"):
        aggdec(["bench", *arguments, "--reference", str(tmp_path / "short.txt")])


@pytest.mark.parametrize("verb", ["bench", "verify"])
def test_a_record_replaces_no_dictionary(verb: str, toy_model_dir: ToyModel, tmp_path: Path) -> None:
    """It is met before anything is measured."""
    mistaken = tmp_path / "dict.txt"
    mistaken.write_text("the 12\n")
    with pytest.raises(AggdecError, match=r"dict\.txt: exists and is another kind of file"):
        aggdec([verb, "no such data", "--path", str(toy_model_dir.checkpoint), "--json", str(mistaken)])
    assert mistaken.read_text() == "the 12\n"
