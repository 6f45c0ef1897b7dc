"""Checks of what a `prepare.yaml` says: entries of the right type whose values make no sense."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from fairseq_aggdec.errors import AggdecError


def check_range(values: Mapping[str, Any], names: Iterable[str], least: float, most: float = math.inf) -> None:
    """Raises `AggdecError` where one of the named numbers is out of range; None passes."""
    for name in names:
        if values[name] is not None and not least <= values[name] <= most:
            wanted = f"from {least} to {most}" if most < math.inf else f"at least {least}"
            raise AggdecError(f"{name}: {values[name]}: must be {wanted}")


def check_columns(columns: list[int]) -> None:
    """Raises `AggdecError` where these are not two columns, or a number is negative."""
    if len(columns) != 2 or min(columns) < 0:
        raise AggdecError(f"columns: {columns}: must be two, those of source and target, counted from 0")


def check_names(names: Iterable[str]) -> None:
    """Raises `AggdecError` where a name is given twice, or is no plain file name.

    fairseq-preprocess takes several files in one option, separated by commas, so that a name must not have one.
    """
    seen: set[str] = set()
    for name in names:
        if not re.fullmatch(r"[^/,.-][^/,]*", str(name)):  # a key in YAML may be a number
            raise AggdecError(f"{name!r}: names files: it must have no / or comma, and begin with no dot or dash")
        if name in seen:
            raise AggdecError(f"{name!r}: is the name of two things, whose files would be the same; rename one")
        seen.add(name)
