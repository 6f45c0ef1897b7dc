"""JSON that somebody has damaged or made up: one line that names the file, never a traceback."""

from pathlib import Path
from typing import Any

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.structured_files import read


@pytest.mark.parametrize(
    "content", ["[" * 100_000, "1" * 5000, "NaN", '{"a": 1', '"\\ud800"', '"\udcff"'], ids=lambda text: text[:6]
)
def test_what_is_no_json_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(AggdecError, match=r"^\S+/file\.json[^\n]*$"):
        read(path, dict[str, Any], "measure again")
