"""The threads of the kernels: on a busy machine, in child processes, and for several callers at once."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.engine.native.library import available_cpus, kernels
from fairseq_aggdec.engine.native.products import PackedProduct
from fairseq_aggdec.process import shorten_waits
from tests.support.random_models import (
    ENGINE_SHAPES,
    dictionary,
    model_of_shape,
    normal,
)


@pytest.fixture(autouse=True)
def number_of_threads() -> Iterator[None]:
    """What a test sets is PyTorch's number afterwards no more."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def product() -> PackedProduct:
    found = kernels()
    if found is None:
        pytest.skip("no kernels for this processor")
    return PackedProduct(found, normal(300, 200), None)


def test_a_child_process_has_threads_of_its_own(product: PackedProduct) -> None:
    torch.set_num_threads(2)
    x = normal(3, 200)
    expected = product(x)
    child = os.fork()
    if child == 0:
        os._exit(0 if all(torch.equal(product(x), expected) for _ in range(200)) else 1)
    ended = time.monotonic() + 60
    while (status := os.waitpid(child, os.WNOHANG)) == (0, 0):
        time.sleep(0.01)
        if time.monotonic() > ended:
            os.kill(child, 9)
    assert status == (child, 0)


def test_several_callers_at_once_get_their_own_results(product: PackedProduct) -> None:
    torch.set_num_threads(2)
    inputs = [normal(5, 200, seed=seed) for seed in range(3)]
    expected = [product(x) for x in inputs]

    def repeated(number: int) -> bool:
        return all(
            torch.equal(product(inputs[number]), expected[number]) for _ in range(500)
        )

    with ThreadPoolExecutor(3) as callers:
        assert all(callers.map(repeated, range(3)))


@pytest.mark.skipif(kernels() is None, reason="no kernels")
@pytest.mark.parametrize(
    "variable, threads",
    [({}, [0, 1, 0, 1]), ({"GOMP_SPINCOUNT": "5"}, [0, 0, 0, 0])],
)
def test_openmp_is_kept_from_waiting_awake_while_the_kernels_decode(
    variable: dict[str, str], threads: list[int]
) -> None:
    """fairseq's own search keeps OpenMP's waits, without which it takes twice as long, and so does who has set them."""
    program = (
        "import threading; from fairseq_aggdec import load; model = load.shipped('gec')\n"
        "for mode in ('beam', 'iad', 'beam', 'aggressive-beam'):\n"
        "    model.decode('a', mode); print([thread.name for thread in threading.enumerate()].count('aggdec-openmp'))"
    )
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GOMP_", "OMP_"))
    }
    printed = subprocess.check_output(
        [sys.executable, "-c", program], env=environment | variable
    )
    assert list(map(int, printed.split())) == threads


@pytest.mark.skipif(kernels() is None, reason="no kernels")
def test_openmp_is_kept_from_waiting_awake_while_an_engine_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(variable, raising=False)
    shorten_waits(False)
    Engines().decoder(model_of_shape(ENGINE_SHAPES[0], 1, dictionary(30)).decoder)
    names = [thread.name for thread in threading.enumerate()]
    shorten_waits(False)
    assert "aggdec-openmp" in names


@pytest.mark.parametrize(
    "files, expected",
    [
        ({}, 8),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/b/cpu.max": "250000 100000\n",
            },
            3,
        ),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/cpu.max": "50000 100000\n",
            },
            1,
        ),
        (
            {
                "proc/self/cgroup": "5:memory:/b\n3:cpu,cpuacct:/a\n",
                "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "400000\n",
                "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            4,
        ),
    ],
)
def test_a_quota_of_cpus_bounds_the_threads(
    files: dict[str, str],
    expected: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the process's cgroup or one above it, in either version of cgroups; eight CPUs without one."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)))
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert available_cpus(tmp_path) == expected
