"""JSON and YAML that somebody has damaged or made up: one line that names the file, never a traceback."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.benchmarking.record import load_record
from fairseq_aggdec.lab.benchmarking.report import markdown
from fairseq_aggdec.structured_files import read, read_yaml
from tests.lab.benchmarking.tiny import made_up_record, made_up_run

ODD: list[Any] = [None, True, -1, 1e308, 10**30, "x", [], [[]], {"a": 1}, "\ud800"]


def _places(content: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Of every value in it, by the keys and positions that lead there; of a list's items the first."""
    if place:
        yield place
    inner = content if isinstance(content, dict) else dict(enumerate(content[:1] if isinstance(content, list) else ()))
    for key, value in inner.items():
        yield from _places(value, (*place, key))


def _use(path: Path) -> str:
    """Prints a measurement and writes it again; returns why it cannot be read."""
    try:
        record = load_record(path)
    except AggdecError as error:
        return str(error)
    markdown(record).encode()
    record.save(path)
    assert load_record(path) == record
    return ""


def test_every_odd_value_in_a_measurement_is_refused_or_printed(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    counted: dict[str, Any] = {"iterations": 10, "modules": {"encoder": 0.1}, "bleu": 30.0, "host_bytes": 10**9}
    made_up_record([made_up_run("greedy", 0.2), made_up_run("iad", 0.1, **counted)]).save(path)
    whole = json.loads(path.read_text(encoding="utf-8"))
    refused = 0
    for *parents, last in list(_places(whole)):
        for value in ODD:
            content = copy.deepcopy(whole)
            inner = content
            for key in parents:
                inner = inner[key]
            inner[last] = value
            path.write_text(json.dumps(content), encoding="utf-8")
            reason = _use(path)
            refused += bool(reason)
            assert not reason or (reason.startswith(str(path)) and "\n" not in reason)
    assert refused > 150


@pytest.mark.parametrize(
    "content", ["[" * 100_000, "1" * 5000, "NaN", '{"a": 1', '"\\ud800"', '"\udcff"'], ids=lambda text: text[:6]
)
def test_what_is_no_json_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(AggdecError, match=r"^\S+/file\.json[^\n]*$"):
        read(path, dict[str, Any], "measure again")


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
