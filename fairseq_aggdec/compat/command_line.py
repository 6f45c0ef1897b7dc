"""Checks of fairseq's command lines: bfloat16 works without a TPU, float16 needs a GPU, batch limits must be positive.

An option of this plugin without its task gives a message of one line; argparse alone would print all options.
"""

import ast
import functools
import importlib.util
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from difflib import get_close_matches
from itertools import pairwise
from typing import Any

import torch
from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY
from fairseq.tasks.translation import TranslationConfig

from fairseq_aggdec.errors import AggdecError, option_name


def with_checks(parse: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap fairseq's `parse_args_and_arch`.

    fairseq treats `--bf16` as `--tpu`, which fails without torch_xla, although GPUs and CPUs compute in bfloat16, too.
    It treats a batch size of 0 as no limit.

    Raises:
        AggdecError: on a call, a limit of a batch is below 1; `--fp16` training, which stores weights in half and in
            single precision, is wanted without a GPU; `--model-overrides` is no dictionary; or an option of this
            plugin is misspelt or lacks its task.
    """

    @functools.wraps(parse)
    def parse_args_and_arch(
        parser: Any, input_args: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        words = list(sys.argv[1:] if input_args is None else input_args)
        _explain_own_options(parser, words)
        try:
            parsed = parse(parser, input_args, *args, **kwargs)
        except KeyError as error:
            # None: --task is missing, for which fairseq-validate has no default
            if error.args != (None,):
                raise
            raise AggdecError(
                "--task is missing: add --task translation, or this plugin's task to which the given options belong"
            ) from None
        given = parsed[0] if isinstance(parsed, tuple) else parsed
        asked_for_tpu = "--tpu" in words
        if (
            getattr(given, "tpu", False)
            and not asked_for_tpu
            and importlib.util.find_spec("torch_xla") is None
        ):
            given.tpu = False
        for name in (
            "batch_size",
            "max_tokens",
            "batch_size_valid",
            "max_tokens_valid",
        ):
            value = getattr(given, name, None)
            if isinstance(value, int) and value < 1:
                raise AggdecError(f"{option_name(name)} {value}: must be at least 1")
        overrides = getattr(given, "model_overrides", "{}")
        with suppress(SyntaxError, TypeError, ValueError):
            overrides = ast.literal_eval(overrides)
        if not isinstance(overrides, dict):
            raise AggdecError(
                f"--model-overrides {overrides}: must be a dictionary, as in \"{{'data': 'data-bin'}}\""
            )
        getattr(TASK_REGISTRY.get(given.task), "check_arguments", lambda _: None)(given)
        is_training = hasattr(given, "max_update")
        on_gpu = torch.cuda.is_available() and not given.cpu
        if (
            is_training
            and given.fp16
            and not (on_gpu or given.tpu or given.memory_efficient_fp16)
        ):
            raise AggdecError(
                "--fp16: fairseq trains in it on GPUs alone; on a CPU take --bf16, or leave it out"
            )
        return parsed

    return parse_args_and_arch


def _explain_own_options(parser: Any, words: list[str]) -> None:
    """Make the parser raise an `AggdecError` of one line for unknown arguments that are options of this plugin.

    `words`: all arguments.
    """
    complain = parser.error
    wanted = dict(pairwise(words)).get("--task")

    def error(message: str) -> None:
        _, _, arguments = message.partition("unrecognized arguments: ")
        unknown = [
            word.partition("=")[0]
            for word in arguments.split()
            if word.startswith("--")
        ]
        # the task of this plugin that has most of them
        tasks = _own_options()
        task = max(tasks, key=lambda name: len(tasks[name].intersection(unknown)))
        for word in unknown:
            if word in tasks[task]:
                if (
                    task == "aggressive_translation"
                    and f"aggressive_{wanted}" in TASK_REGISTRY
                ):
                    task = f"aggressive_{wanted}"
                raise AggdecError(
                    f"{word} is an option of --task {task}: add --task {task}"
                )
            # a misspelt option
            known = [*parser._option_string_actions, *tasks[task]]
            for nearest in get_close_matches(word, known, n=1, cutoff=0.8):
                if nearest in tasks[task]:
                    raise AggdecError(
                        f"{word}: there is no such option; the nearest is {nearest}, of --task {task}"
                    )
        complain(message)

    parser.error = error


def _own_options() -> dict[str, set[str]]:
    """The options that fairseq's task `translation` lacks, by task of this plugin."""
    ordinary = {field.name for field in fields(TranslationConfig)}
    return {
        task: {
            option_name(f.name)
            for f in fields(config)
            if "help" in f.metadata and f.name not in ordinary
        }
        for task, config in TASK_DATACLASS_REGISTRY.items()
        if config.__module__.startswith("fairseq_aggdec.")
    }
