"""Corrections of fairseq's training: resuming on several workers, averaged weights, BART from YAML, swish, speed."""

import functools
import timeit
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel


def broadcast_object(
    obj: Any, src_rank: int, group: Any, dist_device: torch.device
) -> Any:
    """Replace fairseq's `_broadcast_object_slow`, which sends a loaded checkpoint from rank 0 to the other workers.

    fairseq's calls `torch.load`, which since 2.6 refuses fairseq's configuration objects. The bytes come from a
    worker of the same job, so PyTorch's broadcast of pickled objects is safe here.
    """
    box = [obj]
    torch.distributed.broadcast_object_list(
        box, src=src_rank, group=group, device=dist_device
    )
    return box[0]


def copying_frozen_weights(init: Callable[..., None]) -> Callable[..., None]:
    """Wrap the constructor of fairseq's `EMA` (`--store-ema`), which averages all entries of a model's state.

    Integers cannot be averaged. Frozen weights must not be averaged: every update would round them, and a drafter could
    no longer share its verifier's encoder. Both are copied, like fairseq's `skip_keys`.
    """

    @functools.wraps(init)
    def make(
        self: Any, model: Any, config: Any, device: Any = None, skip_keys: Any = None
    ) -> None:
        state = model.state_dict()
        integers = {
            name
            for name in state
            if torch.is_tensor(state[name]) and not state[name].is_floating_point()
        }
        init(
            self,
            model,
            config,
            device,
            {*(skip_keys or ()), *frozen_names(model), *integers},
        )

    return make


def frozen_names(module: nn.Module) -> set[str]:
    """The names of a module's frozen weights; all names of a shared weight, as in the module's state."""
    return {
        name
        for name, weight in module.named_parameters(remove_duplicate=False)
        if not weight.requires_grad
    }


def with_task_name(init: Callable[..., None]) -> Callable[..., None]:
    """Wrap `BARTModel`'s constructor: it reads its task's name, which options from YAML lack, and only mBART needs."""

    @functools.wraps(init)
    def make(self: Any, args: Any, *others: Any, **options: Any) -> None:
        init(self, args, *others, **options)
        if not hasattr(self.args, "task"):
            self.args.task = None

    return make


def without_classes(get: Callable[[str], Any]) -> Callable[[str], Any]:
    """Wrap `get_activation_fn`, which for swish returns the class of SiLU; Conformers need it, and have fairseq's."""
    return lambda activation: F.silu if (found := get(activation)) is nn.SiLU else found


# tokens; in longer sentences fused attention is as fast in fp32, and needs less memory
_MAX_UNFUSED_LENGTH = 128


def without_fused_attention(train_step: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `FairseqTask.train_step`, to switch off PyTorch's fused attention for short sentences on a CPU.

    Its backward pass takes two to three times as long for them as product, softmax and product one after the other
    (PyTorch 2.13, bfloat16 and single precision). The trained weights differ by rounding.
    """

    @functools.wraps(train_step)
    def step(self: Any, sample: dict[str, Any], *others: Any, **options: Any) -> Any:
        inputs = [
            x
            for x in sample.get("net_input", {}).values()
            if torch.is_tensor(x) and x.dim() > 1
        ]
        if inputs and all(
            x.device.type == "cpu" and x.dim() == 2 and x.size(1) <= _MAX_UNFUSED_LENGTH
            for x in inputs
        ):
            with sdpa_kernel(SDPBackend.MATH):
                return train_step(self, sample, *others, **options)
        return train_step(self, sample, *others, **options)

    return step


def is_bfloat16_fast(device: torch.device) -> bool:
    """Whether products are faster in bfloat16 than in single precision; AVX2 alone emulates it, nine times slower."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)

    def seconds(dtype: torch.dtype) -> float:
        x = torch.ones(256, 256, dtype=dtype)
        return min(timeit.repeat(lambda: x @ x, number=2, repeat=3))

    return seconds(torch.bfloat16) < 0.8 * seconds(torch.float32)
