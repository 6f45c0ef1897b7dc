"""Reads YAML files; an error is one line that names the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped]

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import decode_text


def read_yaml(path: Path) -> dict[str, Any]:
    """The names and values in a YAML file in UTF-8.

    Raises:
        AggdecError: the file is not YAML, or holds something else than names and values.
        OSError: the file cannot be read.
    """
    text = decode_text(path.read_bytes(), str(path))
    try:
        content = OmegaConf.to_container(OmegaConf.create(text))
    except (
        YAMLError,
        OmegaConfBaseException,
        ValueError,
        TypeError,
        RecursionError,
    ) as error:
        raise AggdecError(
            f"{path}: not YAML as it should be: {' '.join(str(error).split())}"
        ) from None
    if not isinstance(content, dict):
        raise AggdecError(
            f"{path}: a list where names and values are expected; see the files beside it"
        )
    return content
