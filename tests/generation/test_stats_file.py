"""The file of --decoding-stats."""

from pathlib import Path

import pytest

from fairseq_aggdec.decoding.stats import SentenceStats
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.stats_file import StatsFile

STATS = SentenceStats(drafted=[4, 0, 2], accepted=[1, 0, 2], committed=[2, 1, 2])


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
