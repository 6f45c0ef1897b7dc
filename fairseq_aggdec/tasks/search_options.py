"""fairseq-generate's search options on this plugin's own command lines."""

import argparse
import math
from collections.abc import Callable
from typing import Any

from fairseq_aggdec.errors import option_name


def finite(text: str) -> float:
    """The argparse `type` of a finite number."""
    number = float(text)
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"{text}: must be a finite number")
    return number


_OPTIONS: dict[str, tuple[Callable[[str], Any], str]] = {
    "lenpen": (finite, "default: 1"),
    "unkpen": (finite, "default: 0"),
    "max_len_a": (finite, "default: 0"),
    "max_len_b": (int, "default: 200"),
    "min_len": (int, "default: 1"),
    "no_repeat_ngram_size": (int, "default: 0, off"),
    "temperature": (finite, "default: 1"),
}


def add_search_options(group: Any) -> None:
    """Add the options, under fairseq's names, to an argparse parser or group; the default of all is None."""
    for name, (kind, text) in _OPTIONS.items():
        group.add_argument(option_name(name), type=kind, help=text)


def given_search_options(args: Any) -> dict[str, Any]:
    """The given options by fairseq's field names; empty for a command without these options."""
    values = {name: getattr(args, name, None) for name in _OPTIONS}
    return {name: value for name, value in values.items() if value is not None}
