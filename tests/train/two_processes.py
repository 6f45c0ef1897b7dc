"""Trainings of the repository's configurations at toy size: by one process, and by two that share each batch (gloo).

    RANK=0 python -m tests.train.two_processes FOLDER EXPERIMENT/MODEL...      and the same with RANK=1

train those named and leave their losses in FOLDER. Each update sees the whole training set: as one batch,
or half of it in each process, under PyTorch's `DistributedDataParallel`, fairseq's default (but for the device that
fairseq names to it, which a CPU has not). Models that begin with another one begin with a random one here.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
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
from tests.support.synthetic_images import make_images, write_npz

UPDATES = 4
PAIRS = 240
"""in the training set of `make_toy_data`, and as many images"""
BASES = {"tatoeba_en_de/drafter": "tatoeba_en_de/verifier", "sign_digits_sr/heads_rgb": "sign_digits_sr/base_rgb"}
"""of a configuration, the one whose model it begins with"""
FINE_TUNED = "fine-tuned-"
"""heads whose base learns along, as the stages `fine_tune` and `blockwise_table` train them"""


def base_of(name: str) -> str | None:
    """The configuration whose model this one begins with."""
    return BASES.get(name.replace(FINE_TUNED, ""))


def toy_size(name: str, folder: Path, batch: int) -> Any:
    """A configuration as it is, but small, without dropout, in single precision and on toy data.

    `name`: EXPERIMENT/MODEL; `folder`: with data and base models; `batch`: sentences or images a process.
    """
    experiment, model = name.split("/")
    config = compose(experiment, model.removeprefix(FINE_TUNED)).copy()
    base = base_of(name)
    with open_dict(config):
        images, heads = config.task._name == "super_resolution", config.model._name == "blockwise_transformer"
        given: dict[str, Any] = {"task.data": str(folder / ("images.npz" if images else "bin"))}
        if images:
            given |= {"task.input_size": 2, "task.output_size": 4, "task.valid_images": 5, "task.test_images": 5}
        else:
            given |= {"task.source_lang": "src", "task.target_lang": "tgt"}
        if base:
            given["model.base_checkpoint" if heads else "model.encoder_from"] = _checkpoint(base, folder)
        if heads:
            given["model.block_heads"] = 2  # so that each is drawn soon
        if model.startswith(FINE_TUNED):
            given["model.freeze_base"] = False
        if not heads:  # which take them from their base
            given |= sizes(config.model)
        given |= {f"model.{kind}dropout": 0.0 for kind in ("", "attention_", "activation_")}
        given |= {"common.user_dir": None, "common.cpu": True, "common.fp16": False, "common.bf16": False}
        given |= {"dataset.batch_size": batch, "dataset.max_tokens": None, "dataset.disable_validation": True}
        given |= {"dataset.train_subset": "train", "dataset.valid_subset": "valid"}
        given |= {"optimization.max_update": UPDATES, "optimization.update_freq": [1], "dataset.num_workers": 0}
        given |= {"optimization.max_epoch": 0, "checkpoint.finetune_from_model": None, "lr_scheduler.warmup_updates": 1}
        given |= {"checkpoint.save_interval_updates": 0, "checkpoint.no_epoch_checkpoints": True}
        for key, value in given.items():
            OmegaConf.update(config, key, str(value) if isinstance(value, Path) else value, force_add=True)
        config.tokenizer = config.bpe = None
    return config


def sizes(model: Any) -> dict[str, Any]:
    """Two layers of 16 on each side, in the form in which the model has its options: in groups or flat."""
    small = {"embed_dim": 16, "ffn_embed_dim": 32, "attention_heads": 2, "layers": 2}
    dot = "." if "decoder" in model else "_"
    return {f"model.{side}{dot}{key}": value for side in ("encoder", "decoder") for key, value in small.items()}


def _checkpoint(base: str, folder: Path) -> Path:
    return folder / f"{base.replace('/', '-')}.pt"


def make_base(name: str, folder: Path) -> None:
    """A random model of the configuration, as other ones begin with it."""
    config = toy_size(name, folder, batch=1)
    torch.manual_seed(1)
    model = tasks.setup_task(config.task).build_model(config.model)
    options = OmegaConf.to_container(config.model, throw_on_missing=False)
    torch.save({"args": None, "cfg": {"model": options}, "model": model.state_dict()}, _checkpoint(name, folder))


def losses(name: str, folder: Path, rank: int, processes: int) -> list[float]:
    """Trains, and returns the loss of each update over all processes."""
    config = toy_size(name, folder, PAIRS // processes)
    found: list[float] = []
    step = Trainer.train_step

    def recorded(self: Trainer, *arguments: Any, **options: Any) -> Any:
        log = step(self, *arguments, **options)
        found.append(float(log["loss"]))
        return log

    config.checkpoint.save_dir = str(folder / f"{name.replace('/', '-')}-by-{processes}")
    config.distributed_training.distributed_world_size = processes
    if processes > 1:
        config.distributed_training.update(
            distributed_init_method=f"file://{folder}/meeting-point", distributed_rank=rank, distributed_no_spawn=True,
            distributed_backend="gloo", device_id=0,
        )  # fmt: skip
    with patch.object(Trainer, "train_step", recorded):
        distributed_utils.call_main(config, train.main)
    return found


def train_both_ways(rank: int, chosen: Sequence[str], folder: Path) -> None:
    """In each of two processes: every second training alone, then all together; leaves the losses in FOLDER."""
    torch.set_num_threads(1)
    distributed_fairseq_model.DistributedDataParallel = _on_cpu
    alone = {name: losses(name, folder, rank, 1) for name in chosen[rank::2]}
    together = {name: losses(name, folder, rank, 2) for name in chosen}
    (folder / f"losses-{rank}.json").write_text(json.dumps([alone, together]))
    distributed.destroy_process_group()


def _on_cpu(device_ids: Any, output_device: Any, **options: Any) -> DistributedDataParallel:
    return DistributedDataParallel(**options)


def prepare(chosen: Sequence[str], folder: Path, data: Path) -> None:
    """Puts data and base models into a new folder; `data` is of `make_toy_data`."""
    folder.mkdir(parents=True)
    (folder / "bin").symlink_to(data.resolve())
    write_npz(folder / "images.npz", make_images(PAIRS + 10, size=4))
    for base in {base_of(name) for name in chosen} - {None}:
        make_base(str(base), folder)


def results(chosen: Sequence[str], folder: Path) -> dict[str, tuple[list[float], list[float]]]:
    """The losses by one and by two processes of each training."""
    (first, together), (second, _) = (json.loads((folder / f"losses-{rank}.json").read_text()) for rank in range(2))
    return {name: ((first | second)[name], together[name]) for name in chosen}


if __name__ == "__main__":
    train_both_ways(int(os.environ["RANK"]), sys.argv[2:], Path(sys.argv[1]))
