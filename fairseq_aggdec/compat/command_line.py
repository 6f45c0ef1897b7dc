"""What fairseq's command lines take: bfloat16 without a TPU, float16 with a GPU, limits of batches that make sense."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable
from typing import Any

import torch

from fairseq_aggdec.errors import AggdecError, option_name


def mended(parse: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap fairseq's `parse_args_and_arch`.

    It takes `--bf16` for `--tpu`, and the commands then end where there is no torch_xla: GPUs and CPUs compute in
    bfloat16, too, and fairseq-hydra-train lets them. It takes a batch of no sentences for a batch without a limit.

    Raises:
        AggdecError: when it parses: a limit of a batch is below 1, or a training on a CPU is to keep its weights twice,
            in half precision and in single precision, which fairseq can on a GPU alone.
    """

    @functools.wraps(parse)
    def parse_args_and_arch(parser: Any, input_args: Any = None, *args: Any, **kwargs: Any) -> Any:
        parsed = parse(parser, input_args, *args, **kwargs)
        given = parsed[0] if isinstance(parsed, tuple) else parsed
        asked_for_tpu = "--tpu" in (sys.argv[1:] if input_args is None else input_args)
        if getattr(given, "tpu", False) and not asked_for_tpu and importlib.util.find_spec("torch_xla") is None:
            given.tpu = False
        for name in ("batch_size", "max_tokens", "batch_size_valid", "max_tokens_valid"):
            value = getattr(given, name, None)
            if isinstance(value, int) and value < 1:
                raise AggdecError(f"{option_name(name)} {value}: must be at least 1")
        is_training, on_gpu = hasattr(given, "max_update"), torch.cuda.is_available() and not given.cpu
        if is_training and given.fp16 and not (on_gpu or given.tpu or given.memory_efficient_fp16):
            raise AggdecError("--fp16: fairseq trains in it on GPUs alone; on a CPU take --bf16, or leave it out")
        return parsed

    return parse_args_and_arch
