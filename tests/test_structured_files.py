"""JSON and YAML that somebody has damaged or made up: one line that names the file, never a traceback."""

from pathlib import Path
from typing import Any

import pytest
from experiments.yaml_files import read_yaml

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.structured_files import read

JSON = dict.fromkeys(
    ["[" * 100_000, "1" * 5000, "NaN", '{"a": 1', '"\\ud800"', '"\udcff"'], ""
)
YAML = {
    "languages: [src": ": not YAML as it should be: while parsing",
    "a: !!python/object/apply:os.system [x]": "could not determine a constructor",
    "[" * 600: ": not YAML as it should be: ",
    "- one": "a list where names and values are expected",
    "a: \udcff": ", line 1: not valid UTF-8",
}
CASES = [
    *(("json", *case) for case in JSON.items()),
    *(("yaml", *case) for case in YAML.items()),
]


@pytest.mark.parametrize("kind, content, message", CASES, ids=lambda text: text[:12])
def test_what_is_no_json_or_yaml_is_refused(
    kind: str, content: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / f"file.{kind}"
    path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(AggdecError, match=rf"^\S+/file\.{kind}[^\n]*{message}[^\n]*$"):
        read_yaml(path) if kind == "yaml" else read(
            path, dict[str, Any], "measure again"
        )
