"""Trainings of configs/tatoeba_en_de at toy size: by one process, and by two that share each batch (gloo).

    RANK=0 python -m tests.train.two_processes FOLDER      and the same with RANK=1

train drafter and heads and leave their losses in FOLDER. Each update sees the whole training set: as one batch, or half
of it in each process, under PyTorch's `DistributedDataParallel`, fairseq's default (but for the device that fairseq
names to it, which a CPU has not).
"""

import json
import os
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from fairseq import tasks
from fairseq.distributed import utils as distributed_utils
from fairseq.models import distributed_fairseq_model
from fairseq.trainer import Trainer
from fairseq_cli import train
from omegaconf import OmegaConf, open_dict
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from tests.configs.composing import compose

TRAININGS = ("drafter", "blockwise")
PAIRS = 240
"""in the training set of `make_toy_data`"""
_SIZES = {"embed_dim": 16, "ffn_embed_dim": 32, "attention_heads": 2, "layers": 2}


def toy_size(name: str, folder: Path, sentences: int) -> Any:
    """A configuration as it is, but small, without dropout, in single precision and on toy data."""
    base = str(folder / "verifier.pt")
    own: dict[str, dict[str, Any]] = {
        "verifier": {f"model.{side}.{key}": size for side in ("encoder", "decoder") for key, size in _SIZES.items()},
        "drafter": {"model.encoder_from": base},
        # two heads, of which an update trains one, at times the base's own: the base learns along
        "blockwise": {
            "model.base_checkpoint": base, "model.freeze_base": False, "model.block_heads": 2,
            "criterion.heads_per_step": 1,
        },
    }  # fmt: skip
    given = own[name] | {
        "model.dropout": 0.0, "model.attention_dropout": 0.0, "model.activation_dropout": 0.0,
        "task.data": str(folder / "bin"), "task.source_lang": "src", "task.target_lang": "tgt",
        "common.user_dir": None, "common.bf16": False, "lr_scheduler.warmup_updates": 1,
        "dataset.batch_size": sentences, "dataset.max_tokens": None, "dataset.disable_validation": True,
        "optimization.max_update": 4, "checkpoint.save_interval_updates": 0,
        "checkpoint.finetune_from_model": None, "checkpoint.save_dir": str(folder / f"{name}-{sentences}"),
    }  # fmt: skip
    config = compose("tatoeba_en_de", name).copy()
    with open_dict(config):
        for key, value in given.items():
            OmegaConf.update(config, key, value, force_add=True)
        config.tokenizer = config.bpe = None
    return config


def prepare(folder: Path, data: Path) -> None:
    """Put data, which is of `make_toy_data`, and a random base model into a folder."""
    (folder / "bin").symlink_to(data.resolve())
    config = toy_size("verifier", folder, 1)
    torch.manual_seed(1)
    model = tasks.setup_task(config.task).build_model(config.model)
    options = OmegaConf.to_container(config.model, throw_on_missing=False)
    torch.save(
        {"args": None, "cfg": {"model": options}, "model": model.state_dict()},
        folder / "verifier.pt",
    )


def losses(name: str, folder: Path, rank: int, processes: int) -> list[float]:
    """Trains, and returns the loss of each update over all processes."""
    config = toy_size(name, folder, PAIRS // processes)
    found: list[float] = []
    step = Trainer.train_step

    def recorded(self: Trainer, *arguments: Any, **options: Any) -> Any:
        log = step(self, *arguments, **options)
        found.append(float(log["loss"]))
        return log

    config.distributed_training.distributed_world_size = processes
    if processes > 1:
        config.distributed_training.update(
            distributed_init_method=f"file://{folder}/meeting-point", distributed_rank=rank, distributed_no_spawn=True,
            distributed_backend="gloo", device_id=0,
        )  # fmt: skip
    with patch.object(Trainer, "train_step", recorded):
        distributed_utils.call_main(config, train.main)
    return found


def train_both_ways(rank: int, folder: Path) -> None:
    """In each of two processes: one of the trainings alone, then both together; leaves the losses in FOLDER."""
    torch.set_num_threads(1)
    distributed_fairseq_model.DistributedDataParallel = _on_cpu
    alone = {TRAININGS[rank]: losses(TRAININGS[rank], folder, rank, 1)}
    together = {name: losses(name, folder, rank, 2) for name in TRAININGS}
    (folder / f"losses-{rank}.json").write_text(json.dumps([alone, together]))
    distributed.destroy_process_group()


def _on_cpu(
    device_ids: Any, output_device: Any, **options: Any
) -> DistributedDataParallel:
    return DistributedDataParallel(**options)


if __name__ == "__main__":
    train_both_ways(int(os.environ["RANK"]), Path(sys.argv[1]))
