from pathlib import Path

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.tuning.points import Baselines, Setting, Sweep
from tests.lab.tuning.papers import point

CONDITIONS = {"data": "valid of x", "repeats": 3}
BASELINES = Baselines(5, 26.72, 10.0, 26.62, 8.0)
FIRST, SECOND = point(10, 3, 1.0, 5.97, 26.68), point(15, 3, 1.0, 6.74, 26.94)


def test_a_stopped_run_goes_on(tmp_path: Path) -> None:
    """Half a line, which a killed one may leave, is dropped."""
    path = tmp_path / "points.jsonl"
    sweep = Sweep.open(path, CONDITIONS)
    sweep.add(BASELINES)
    sweep.add(FIRST, SECOND)
    whole = path.read_text()
    path.write_text(whole + '{"point": {"sett')
    again = Sweep.open(path, CONDITIONS)
    assert again == sweep
    assert again.missing([FIRST.setting, Setting(10, 5, 1.0), Setting(10, 5, 1.0)]) == [Setting(10, 5, 1.0)]
    assert path.read_text() == whole


def test_other_conditions_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "points.jsonl"
    Sweep.open(path, CONDITIONS)
    with pytest.raises(AggdecError, match=r"other conditions \(repeats: 5 now, 3 there\); .*: name another file"):
        Sweep.open(path, {**CONDITIONS, "repeats": 5})


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "points.jsonl"
    path.write_text('{"conditions": {"data": "valid of x", "repeats": 3}}\n{"point": {}}\n')
    with pytest.raises(AggdecError, match="line 2: missing or unknown entries"):
        Sweep.open(path, CONDITIONS)


@pytest.mark.parametrize("other", [b"", b"no line", b"\xff\n", b"[]\n"])
def test_a_file_of_something_else_is_refused_and_stays(other: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(other)
    with pytest.raises(AggdecError, match=r"model\.pt"):
        Sweep.open(path, CONDITIONS)
    assert path.read_bytes() == other
