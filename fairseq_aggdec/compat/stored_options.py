"""The options in a checkpoint: options that fairseq evaluates as Python must be plain values.

fairseq passes the options of `EVALUATED` to `eval` when it builds a task, a model or an optimizer, which would run a
function call in one of them. docs/fairseq.md has more.
"""

import argparse
import ast
import re
from collections.abc import Iterable
from typing import Any

from omegaconf import OmegaConf

EVALUATED = frozenset(
    # models
    "adaptive_input_cutoff adaptive_softmax_cutoff character_filters conv_aggregator_layers conv_feature_layers "
    "decoder_attention decoder_layers downsample encoder_attention encoder_layers feature_encoder_spec gated_attention "
    "pretrained project_input self_attention xformers_att_config "
    # tasks, criterions, optimizers, workers, commands
    "left_pad_source left_pad_target wer_args adafactor_eps adam_betas adamax_betas lamb_betas "
    "pipeline_balance pipeline_decoder_balance pipeline_decoder_devices pipeline_devices pipeline_encoder_balance "
    "pipeline_encoder_devices model_overrides".split()
)
"""the names of the options that fairseq evaluates; a test compares them with its source code"""


def find_code(options: Any, path: str = "") -> str | None:
    """The first option that could run code, and the reason; None where all are plain values.

    `options` are nested, and interpolations not resolved; `path`: the names of their groups, joined by dots.
    """
    if OmegaConf.is_config(options):
        options = OmegaConf.to_container(options, resolve=False)
    if isinstance(options, argparse.Namespace):
        options = vars(options)
    name = path.rpartition(".")[2]
    # `encoder_` or `decoder_` before it
    evaluated = name in EVALUATED or name.partition("_")[2] in EVALUATED
    if isinstance(options, str):
        if evaluated and not is_plain(options):
            return f"option {path} holds {_shown(options)}, which fairseq would evaluate as Python"
        if re.search(r"\$\{.*:", options, re.DOTALL):
            return f"option {path} holds {_shown(options)}, which OmegaConf would resolve by a function"
        return None
    if evaluated and not isinstance(options, dict | list | tuple | float | int | None):
        return f"option {path} holds a {type(options).__name__}, which fairseq would evaluate as Python"
    inner: Iterable[tuple[Any, Any]] = ()
    if isinstance(options, dict):
        inner = options.items()
    elif isinstance(options, list | tuple):
        inner = enumerate(options)
    return next(
        filter(
            None,
            (find_code(value, f"{path}.{key}".lstrip(".")) for key, value in inner),
        ),
        None,
    )


_PLAIN = (
    ast.Expression,
    ast.Constant,
    ast.Tuple,
    ast.List,
    ast.Dict,
    ast.Load,
    ast.UnaryOp,
    ast.USub,
)
_LISTS_JOINED = (ast.BinOp, ast.Add, ast.Mult)


def is_plain(text: str) -> bool:
    """Whether an expression consists of literals, and of `+` and `*` as in fairseq's `[(512, 3)] * 20`."""
    try:
        tree = ast.parse(text.strip() or "None", mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return all(isinstance(node, _PLAIN + _LISTS_JOINED) for node in ast.walk(tree))


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}...")
