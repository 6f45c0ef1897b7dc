"""Which shards and which device this process takes, by the variables that torchrun sets."""

from __future__ import annotations

import os

import torch

from fairseq_aggdec.errors import AggdecError


def rank_of_environment() -> tuple[int, int]:
    """RANK and WORLD_SIZE, by which several commands share the shards; (0, 1) where they are not set.

    Raises:
        AggdecError: they are no whole numbers, or RANK is not one of 0 to WORLD_SIZE - 1.
    """
    rank, size = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if rank is None or size is None:
        return 0, 1
    if not (rank.strip().isdecimal() and size.strip().isdecimal() and int(rank) < int(size)):
        raise AggdecError(
            f"RANK={rank} and WORLD_SIZE={size} in the environment: give each of WORLD_SIZE processes a RANK of its "
            "own, the first one 0"
        )
    return int(rank), int(size)


def device_of_environment(cpu: bool, precision: str | None = None) -> torch.device:
    """A GPU if there is one (under torchrun the one of LOCAL_RANK), else the CPU.

    Raises:
        AggdecError: half precision is asked for on the CPU.
    """
    if cpu or not torch.cuda.is_available():
        if precision == "fp16":
            raise AggdecError("--fp16 is for GPUs; take --bf16 where the processor multiplies bfloat16, or neither")
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device
