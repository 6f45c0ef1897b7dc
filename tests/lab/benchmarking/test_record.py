"""Files of records; what they come to is computed in `test_measure.py`."""

import json
from pathlib import Path

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.benchmarking.record import load_record
from tests.lab.benchmarking.tiny import made_up_record, made_up_run


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = made_up_record([made_up_run("beam5", 0.2), made_up_run("iad", 0.1, iterations=[1, 2, 3, 4])])
    record.save(tmp_path / "folder" / "out.json")
    assert load_record(tmp_path / "folder" / "out.json") == record


def test_a_record_of_an_earlier_version_lacks_what_it_did_not_count(tmp_path: Path) -> None:
    record = made_up_record([made_up_run("gad", 0.2)])
    record.save(tmp_path / "out.json")
    content = json.loads((tmp_path / "out.json").read_text())
    for name in ("differences", "longest_draft"):
        del content["runs"][0][name]
    (tmp_path / "out.json").write_text(json.dumps(content))
    assert load_record(tmp_path / "out.json") == record


@pytest.mark.parametrize(
    ("content", "reason"),
    [('{"runs": [], "format": 1}', "has format 1"), ('{"runs": [], "format": 2}', "missing or unknown entries")],
)
def test_other_files_are_refused_by_name(content: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(AggdecError, match=f"other.json: {reason}"):
        load_record(path)


@pytest.mark.parametrize("change", [{"latencies": [[1.0]]}, {"batches": [[0], [1], [2], [2]]}])
def test_runs_that_do_not_fit_are_refused_by_number(change: dict, tmp_path: Path) -> None:
    made_up_record([made_up_run("beam5", 0.1), made_up_run("iad", 0.1)]).save(tmp_path / "out.json")
    content = json.loads((tmp_path / "out.json").read_text())
    content["runs"][1].update(change)
    (tmp_path / "out.json").write_text(json.dumps(content))
    with pytest.raises(AggdecError, match=r"run 2 \(iad\): times or counters do not fit 4 sentences"):
        load_record(tmp_path / "out.json")
