"""The file of --decoding-stats."""

import json
from pathlib import Path

import pytest

from fairseq_aggdec.decoding.stats import SentenceStats
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.stats_file import StatsFile

STATS = SentenceStats(drafted=[4, 0, 2], accepted=[1, 0, 2], committed=[2, 1, 2])


def test_one_record_a_sentence_as_they_come(tmp_path: Path) -> None:
    path = tmp_path / "stats.jsonl"
    path.write_text('{"id": 1, "of": "an earlier run"}\n', encoding="utf-8")
    file = StatsFile(str(path))
    file.write(sentence_id=7, source=[4, 5, 6, 7], output=[4, 5, 8, 7], stats=STATS, seconds=0.25)
    assert json.loads(path.read_text(encoding="utf-8")) == {  # before it is closed
        "id": 7,
        "source_length": 4,
        "output_length": 4,
        "iterations": 3,
        "drafted": 6,
        "accepted": 3,
        "accepted_per_iteration": [1, 0, 2],
        "seconds": 0.25,
        "edit_ratio": 0.25,
    }
    file.write(sentence_id=8, source=[], output=[], stats=SentenceStats([1], [1], [1]), seconds=None)
    last = json.loads(path.read_text(encoding="utf-8").splitlines()[1])
    assert (last["id"], last["seconds"], last["edit_ratio"]) == (8, None, 0)


def test_a_file_that_holds_something_else_is_not_emptied(tmp_path: Path) -> None:
    """Such as the text that the same command reads."""
    path = tmp_path / "three.txt"
    path.write_text("one\n", encoding="utf-8")
    with pytest.raises(AggdecError, match=r"--decoding-stats .*three\.txt: is a file that this option did not write"):
        StatsFile(str(path))
    assert path.read_text(encoding="utf-8") == "one\n"


def test_a_full_disk_is_a_message() -> None:
    with pytest.raises(AggdecError, match=r"--decoding-stats /dev/full: cannot be written \(No space left"):
        StatsFile("/dev/full").write(7, [4], [4, 5, 6, 7], STATS, None)
