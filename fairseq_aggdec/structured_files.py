"""Reads and writes JSON files of typed content; an error is one line that names the file."""

import json
import re
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import decode_text, written_whole

T = TypeVar("T")


def read(path: Path, kind: type[T], advice: str = "write it again") -> T:
    """The content of a JSON file in UTF-8; see `parse`. Raises `OSError` if it cannot be read."""
    return parse(decode_text(path.read_bytes(), str(path)), kind, str(path), advice)


def parse(text: str, kind: type[T], where: str, advice: str) -> T:
    """The content of a JSON text as an object of a type, such as a dataclass or `dict[str, Any]`.

    Args:
        text: JSON.
        kind: the type; a dataclass takes no unknown entries, and lacks only those with a default.
        where: the file, and maybe the line, for an error message.
        advice: the end of an error message, such as `measure again`.

    Raises:
        AggdecError: the text is not JSON or not of the type, or a dataclass refuses it.
    """
    try:
        content = json.loads(text, parse_constant=_no_number)
        if "\\u" in text:
            # half a surrogate pair could not be printed
            json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        # JSONDecodeError and Unicode errors are ValueErrors
        raise AggdecError(f"{where}: not JSON ({error}); {advice}") from None
    if kind == dict[str, Any]:  # all that is read without the extra `lab`
        if not isinstance(content, dict):
            raise AggdecError(f"{where}: names and values are expected; {advice}")
        return content  # type: ignore[return-value]
    from cattrs import transform_error

    try:
        return _converter().structure(content, kind)
    except Exception as error:  # cattrs raises groups of any errors

        def reason_of(error: BaseException, kind: Any) -> str:
            return (
                str(error)
                if isinstance(error, AggdecError)
                else f"{_reason(error, kind)}; {advice}"
            )

        reason, _, place = transform_error(error, "", reason_of)[0].rpartition(" @ ")
        keys = [
            int(name) + 1 if name.isdecimal() else name
            for name in re.findall(r"\w+", place)
        ]
        raise AggdecError(
            f"{', '.join([where, *map(str, keys)])}: {' '.join(reason.split())}"
        ) from None


def write(path: Path, content: object) -> None:
    """Write a dataclass, or names and values, as JSON: a line for each, and for each entry of a list of records."""
    fields = json.loads(json.dumps(content, default=asdict))
    text = ",\n".join(
        f" {json.dumps(name)}: {_lines(value)}" for name, value in fields.items()
    )
    with written_whole(path) as partial:
        partial.write_text(f"{{\n{text}\n}}\n", encoding="utf-8")


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _lines(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(f"  {json.dumps(entry)}" for entry in value) + "\n ]"
    return json.dumps(value)


def _reason(error: BaseException, kind: Any) -> str:
    from cattrs import ForbiddenExtraKeysError
    from cattrs.v import format_exception

    if isinstance(error, ForbiddenExtraKeysError):
        return f"unknown entries ({', '.join(sorted(map(str, error.extra_fields)))})"
    return (
        "names and values are expected"
        if isinstance(error, AttributeError)
        else format_exception(error, kind)
    )


def _as_is(value: Any, kind: type) -> Any:
    """The value, if it is of the type: cattrs would make the number 1 of True and of "1"."""
    fits = type(value) in ((int, float) if kind is float else (kind,))
    if not fits or (kind in (int, float) and not abs(value) < 2**63):
        raise ValueError
    return value


@cache
def _converter() -> Any:
    from cattrs.preconf.json import make_converter

    converter = make_converter(forbid_extra_keys=True)
    for kind in (bool, int, float, str):
        converter.register_structure_hook(kind, _as_is)
    return converter
