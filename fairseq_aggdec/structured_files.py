"""Reads and writes JSON and YAML files of typed content; an error is one line that names the file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import UnionType
from typing import Any, NoReturn, TypeVar, get_args, get_origin

from cattrs import ForbiddenExtraKeysError, transform_error
from cattrs.preconf.json import make_converter
from cattrs.v import format_exception

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import decode_text, written_whole

T = TypeVar("T")


def read(path: Path, kind: type[T], advice: str = "write it again") -> T:
    """The content of a JSON file as an object of a type, such as a dataclass or `dict[str, Any]`.

    Args:
        path: in UTF-8.
        kind: the type; a dataclass takes no unknown entries, and lacks only those with a default.
        advice: the end of an error message, such as `measure again`.

    Raises:
        AggdecError: the content is not JSON or not of the type, or a dataclass refuses it.
        OSError: the file cannot be read.
    """
    return structured(read_json(path, advice), kind, str(path), advice)


def write(path: Path, content: object) -> None:
    """Write a dataclass as JSON: one line for each field, and for each entry of a field that lists dataclasses."""
    fields = _CONVERTER.unstructure(content)
    text = ",\n".join(f" {json.dumps(name)}: {_lines(value)}" for name, value in fields.items())
    with written_whole(path) as partial:
        partial.write_text(f"{{\n{text}\n}}\n", encoding="utf-8")


def structured(content: Any, kind: type[T], where: str, advice: str) -> T:
    """JSON's or YAML's names and values as an object of a type; see `read`. `where` names them in an error."""
    try:
        return _CONVERTER.structure(content, kind)
    except Exception as error:  # cattrs raises groups of any errors

        def reason_of(error: BaseException, kind: Any) -> str:
            return str(error) if isinstance(error, AggdecError) else f"{_reason(error, kind)}; {advice}"

        reason, _, place = transform_error(error, "", reason_of)[0].rpartition(" @ ")
        keys = [int(name) + 1 if name.isdecimal() else name for name in re.findall(r"\w+", place)]
        raise AggdecError(f"{', '.join([where, *map(str, keys)])}: {' '.join(reason.split())}") from None


def made_of(kind: type[T], content: Any, where: str, advice: str, complete: bool = True) -> T:
    """The former name of `structured`; `complete` has no meaning any more."""
    return structured(content, kind, where, advice)


def read_json(path: Path, advice: str) -> Any:
    """The content of a JSON file; see `read`."""
    return parse_json(decode_text(path.read_bytes(), str(path)), str(path), advice)


def parse_json(text: str, where: str, advice: str) -> Any:
    """The content of a JSON text; `where` names it in an error.

    Raises:
        AggdecError: it is not JSON, is nested too deeply, or has a number or a character that cannot be represented.
    """
    try:
        content = json.loads(text, parse_constant=_no_number)
        if "\\u" in text:
            json.dumps(content, ensure_ascii=False).encode()  # half a surrogate pair could not be printed
    except (ValueError, RecursionError) as error:  # JSONDecodeError and Unicode errors are ValueErrors
        raise AggdecError(f"{where}: not JSON ({error}); {advice}") from None
    return content


def read_yaml(path: Path, resolve: bool = False) -> dict[str, Any]:
    """The names and values in a YAML file.

    Args:
        path: in UTF-8.
        resolve: replace each `${name}` by its value.

    Raises:
        AggdecError: the file is not YAML, or holds something else than names and values.
        OSError: the file cannot be read.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError  # type: ignore[import-untyped]

    text = decode_text(path.read_bytes(), str(path))
    try:
        content = OmegaConf.to_container(OmegaConf.create(text), resolve=resolve)
    except (YAMLError, OmegaConfBaseException, ValueError, TypeError, RecursionError) as error:
        raise AggdecError(f"{path}: not YAML as it should be: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise AggdecError(f"{path}: a list where names and values are expected; see the files beside it")
    return content


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _lines(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(f"  {json.dumps(entry)}" for entry in value) + "\n ]"
    return json.dumps(value)


def _reason(error: BaseException, kind: Any) -> str:
    if isinstance(error, ForbiddenExtraKeysError):
        return f"unknown entries ({', '.join(sorted(map(str, error.extra_fields)))})"
    if isinstance(error, AttributeError):
        return "names and values are expected"
    return format_exception(error, kind)


def _as_is(value: Any, kind: type) -> Any:
    """The value, if it is of the type: cattrs would make the number 1 of True and of "1"."""
    fits = type(value) in ((int, float) if kind is float else (kind,))
    if not fits or (kind in (int, float) and not abs(value) < 2**63):
        raise ValueError
    return value


_CONVERTER = make_converter(forbid_extra_keys=True)
for _kind in (bool, int, float, str):
    _CONVERTER.register_structure_hook(_kind, _as_is)


def _one_or_many(value: Any, kind: Any) -> Any:
    one, many = get_args(kind)
    return _CONVERTER.structure(value, many if isinstance(value, list) else one)


def _is_one_or_many(kind: Any) -> bool:
    return get_origin(kind) is UnionType and get_origin(get_args(kind)[1]) is list


_CONVERTER.register_structure_hook_func(_is_one_or_many, _one_or_many)
