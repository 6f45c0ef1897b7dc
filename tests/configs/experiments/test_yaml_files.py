"""YAML that somebody has damaged or made up: one line that names the file, never a traceback."""

from pathlib import Path

import pytest
from experiments.yaml_files import read_yaml

from fairseq_aggdec.errors import AggdecError

YAML = {
    "languages: [src": "file.yaml: not YAML as it should be: while parsing",
    "a: !!python/object/apply:os.system [x]": "could not determine a constructor",
    "[" * 600: "file.yaml: not YAML as it should be: ",
    "- one": "a list where names and values are expected",
    "a: \udcff": "file.yaml, line 1: not valid UTF-8",
}


@pytest.mark.parametrize(("content", "message"), YAML.items(), ids=lambda text: text[:12])
def test_what_is_no_yaml_is_refused(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(AggdecError) as caught:
        read_yaml(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
