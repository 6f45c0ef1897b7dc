"""A correction of fairseq's `--activation-fn swish`, which its command line refuses and its models cannot call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from fairseq import utils
from fairseq.dataclass.constants import ChoiceEnum
from torch import nn


def callable_swish(get: Callable[[str], Any]) -> Callable[[str], Any]:
    """Wrap `get_activation_fn`, which returns the class of SiLU in place of a function; Conformers need the class."""

    @functools.wraps(get)
    def function(activation: str) -> Any:
        found = get(activation)
        return F.silu if found is nn.SiLU else found

    return function


def choices() -> Any:
    """The type of a Transformer's option `activation_fn`, which lacks swish."""
    return ChoiceEnum([*utils.get_available_activation_fns(), "swish"])
