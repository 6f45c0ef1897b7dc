"""The search options of a benchmark, which are those of fairseq-generate."""

from collections.abc import Mapping, Sequence
from typing import Any

from fairseq_aggdec.errors import AggdecError, option_name
from fairseq_aggdec.generation.options import given_search_options
from fairseq_aggdec.lab.bench.modes import CTRANSLATE2, ModeSpec

SOURCE_OPTIONS = ("truncate_source", "max_source_positions")
"""options of the task, which reads the sources"""
OTHER_OPTIONS = ("block_ngrams", *SOURCE_OPTIONS)
"""options beside those of fairseq's search"""
_CTRANSLATE2_LACKS = ("unkpen", "temperature")


def given_settings(args: Any) -> dict[str, Any]:
    """The options of the search and of reading the sources that differ from the defaults, under fairseq's names."""
    others = {name: getattr(args, name, None) for name in OTHER_OPTIONS}
    return {
        **given_search_options(args),
        **{name: value for name, value in others.items() if value},
    }


def check_peers(given: Mapping[str, Any], modes: Sequence[ModeSpec]) -> None:
    """Refuse search options that another program does not have: its outputs would not be comparable.

    `given`: from `given_settings`. Raises `AggdecError`, which names the mode and the options that it lacks.
    """
    for mode in modes:
        lacking: list[str] = []
        # it predicts lengths and refines whole sentences: no search option applies
        if mode.nat is not None:
            lacking = [name for name in given if name not in SOURCE_OPTIONS]
        elif mode.peer == CTRANSLATE2:
            lacking = [name for name in _CTRANSLATE2_LACKS if name in given]
        if lacking:
            raise AggdecError(
                f"mode {mode.name} cannot honour {', '.join(map(option_name, lacking))}: leave out one of them"
            )
        if (
            mode.peer == CTRANSLATE2
            and given.get("no_repeat_ngram_size")
            and "block_ngrams" not in given
        ):
            raise AggdecError(
                f"mode {mode.name} always bans repeated n-grams, which fairseq's search and this plugin's modes "
                "do not do on a CPU: add --block-ngrams, or leave --no-repeat-ngram-size out"
            )


def as_options(given: Mapping[str, Any]) -> str:
    """The options of `given_settings` as they are written on a command line."""
    return " ".join(
        option_name(name) if value is True else f"{option_name(name)} {value:g}"
        for name, value in given.items()
    )
