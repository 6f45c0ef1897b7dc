"""Reading and checking the user's JSON and YAML files; an error is one line that names the file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, NoReturn, Union, get_args, get_origin, get_type_hints

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import decode_text


def read_json(path: Path, advice: str) -> Any:
    """The content of a JSON file.

    Args:
        path: in UTF-8.
        advice: the end of an error message, such as `give a file that aggdec bench --json wrote`.

    Raises:
        AggdecError: the file is not JSON.
        OSError: the file cannot be read.
    """
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


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


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


def made_of(kind: Any, content: Any, where: str, advice: str, complete: bool = True) -> Any:
    """A dataclass, and dataclasses within it, made of the names and values in JSON or YAML.

    Args:
        kind: the dataclass.
        content: the names and values of its fields, and no others.
        where: the place, for error messages.
        advice: the end of an error message, which says what to do.
        complete: whether fields with a default must be given, too.

    Raises:
        AggdecError: an entry is missing, unknown, or not of its field's type (numbers must be finite), or the dataclass
            refuses it.
    """
    hints = get_type_hints(kind)
    names = {entry.name for entry in fields(kind)}
    needed = {entry.name for entry in fields(kind) if complete or entry.default is entry.default_factory is MISSING}
    if not isinstance(content, Mapping) or not needed <= content.keys() <= names:
        odd = (needed - content.keys()) | (content.keys() - names) if isinstance(content, Mapping) else names
        raise AggdecError(f"{where}: missing or unknown entries ({', '.join(sorted(map(str, odd)))}); {advice}")
    values = {name: _typed(value, hints[name], f"{where}, {name}", advice, complete) for name, value in content.items()}
    try:
        return kind(**values)
    except AggdecError as error:
        raise AggdecError(f"{where}: {error}") from None


def _typed(value: Any, kind: Any, where: str, advice: str, complete: bool) -> Any:
    inside = get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        for one in inside:
            if _has_form(value, one):
                return _typed(value, one, where, advice, complete)
    elif isinstance(kind, type) and is_dataclass(kind):
        return value if isinstance(value, kind) else made_of(kind, value, where, advice, complete)
    elif _has_form(value, kind):
        if get_origin(kind) is list:
            named = enumerate(value, start=1)
            return [_typed(item, inside[0], f"{where} {number}", advice, complete) for number, item in named]
        if get_origin(kind) in (dict, Mapping):
            return {key: _typed(item, inside[1], f"{where} {key}", advice, complete) for key, item in value.items()}
        return Path(value) if kind is Path else value
    raise AggdecError(f"{where}: {_shown(value)} is not of type {getattr(kind, '__name__', kind)}; {advice}")


def _has_form(value: Any, kind: Any) -> bool:
    """Whether a value can be of a type; the values within it are not looked at."""
    if kind is Path:
        return isinstance(value, str)
    if isinstance(kind, type) and is_dataclass(kind):
        return isinstance(value, (dict, kind))
    if get_origin(kind):
        return isinstance(value, get_origin(kind))
    if kind in (int, float):
        is_number = isinstance(value, int if kind is int else int | float) and not isinstance(value, bool)
        return is_number and abs(value) < 2**63
    return kind is Any or isinstance(value, kind)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
