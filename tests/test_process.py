"""What decoding changes in the process around it."""

import gc
import os
import platform
import subprocess
import sys

import pytest

from fairseq_aggdec.process import keep_freed_memory, no_garbage_collection

PROGRAM = """
import resource, torch
from fairseq_aggdec.process import keep_freed_memory
print(keep_freed_memory(), keep_freed_memory())

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        tensors = [torch.zeros(5_000_000) for _ in range(3)]  # 60 MB
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
print(faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc alone")
def test_free_memory_is_not_fetched_again() -> None:
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MALLOC_", "GLIBC_"))
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        env=clean,
    )
    first, again, faults = done.stdout.split()
    assert (first, again) == ("True", "True")
    assert int(faults) < 100


def test_what_the_user_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "131072")
    assert not keep_freed_memory.__wrapped__()


def test_pythons_collector_stays_off_until_the_last_of_several_threads_is_done() -> (
    None
):
    one = no_garbage_collection()
    other = no_garbage_collection()
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert not gc.isenabled()
    other.__exit__(None, None, None)
    assert gc.isenabled()
