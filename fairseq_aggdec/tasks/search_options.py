"""fairseq-generate's search options on this plugin's own command lines."""

import argparse
from typing import Any

from fairseq_aggdec.errors import option_name

_OPTIONS: dict[str, tuple[type, str]] = {
    "lenpen": (float, "default: 1"),
    "unkpen": (float, "default: 0"),
    "max_len_a": (float, "default: 0"),
    "max_len_b": (int, "default: 200"),
    "min_len": (int, "default: 1"),
    "no_repeat_ngram_size": (int, "default: 0, off"),
    "temperature": (float, "default: 1"),
}


def add_search_options(group: Any) -> None:
    """Adds the options, under fairseq's names, to an argparse parser or group; one that is not given is None."""
    for name, (kind, text) in _OPTIONS.items():
        group.add_argument(option_name(name), type=kind, help=text)


def given_search_options(args: argparse.Namespace) -> dict[str, Any]:
    """The given options by fairseq's names of the fields; none for a command without these options."""
    values = {name: getattr(args, name, None) for name in _OPTIONS}
    return {name: value for name, value in values.items() if value is not None}
