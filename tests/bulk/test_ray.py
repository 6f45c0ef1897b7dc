"""`aggdec decode --engine ray` on a cluster of this machine."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray

from fairseq_aggdec.errors import AggdecError
from tests.bulk.decoding import CORRECT, IN_SHARDS, at_the_first_shard, outputs, run


def test_ray_writes_the_same_though_a_worker_is_killed(text: Path, whole: list[str], tmp_path: Path) -> None:
    killed: list[int] = []

    def kill_an_actor() -> None:
        killed.append(next(pid for pid in descendants(os.getpid()) if b"_Actor" in command_line(pid)))
        os.kill(killed[0], signal.SIGKILL)

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20)
    try:
        with at_the_first_shard(tmp_path / "out", kill_an_actor):
            run(*CORRECT, *IN_SHARDS, "--input", text, "--output", tmp_path / "out", "--workers", 2, "--engine", "ray")
        wrong = ["--bpe-codes", "/nowhere/codes", "--engine", "ray"]
        with pytest.raises(AggdecError, match=r"--bpe subword_nmt: file /nowhere/codes not found$"):
            run(*CORRECT, *IN_SHARDS, "--input", text, "--output", tmp_path / "other", *wrong)
    finally:
        ray.shutdown()
        shutil.rmtree(Path(tempfile.gettempdir()) / "ray", ignore_errors=True)  # its logs
    assert killed
    assert outputs(tmp_path / "out") == whole


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended
        return b""


def descendants(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [*map(int, task.read_text().split())]
        except OSError:
            continue
        for child in children:
            yield child
            yield from descendants(child)
