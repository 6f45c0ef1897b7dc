"""Fields of a task that refer to fairseq's whole configuration, such as `II("generation.nbest")`."""

from typing import Any

from omegaconf.errors import InterpolationKeyError


def field_of_fairseq(cfg: Any, name: str, default: Any = None) -> Any:
    """The field's value; `default` where a program has built the task without fairseq's whole configuration."""
    try:
        value = getattr(cfg, name)
    except InterpolationKeyError:
        return default
    return default if isinstance(value, str) and value.startswith("${") else value
