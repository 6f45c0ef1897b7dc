"""How long decoding takes with one thread and with all while other processes use the cores.

    .venv/bin/python configs/shared/measuring/busy_machine.py [--rounds 5] [--modes greedy iad] [--precision fp32]

Twelve sentences by the shipped corrector, one at a time. Each row of the table is a process of its own in which runs
with one thread and with all take turns; seconds are medians.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

BUSY = "while True: pass"
CGROUPS = Path("/sys/fs/cgroup")


def measure(modes: list[str], precision: str, rounds: int) -> None:
    """Prints one row's seconds."""
    import torch

    from fairseq_aggdec import load

    every = os.cpu_count() or 1
    model = load.shipped("gec", precision=precision)
    folder = Path(sys.modules["fairseq_aggdec"].__file__ or "").parent / "demo/gec"
    lines = (folder / "sentences.txt").read_text(encoding="utf-8").splitlines()[:12]
    row = ""
    for mode in modes:
        seconds: dict[int, list[float]] = {1: [], every: []}
        for number in range(rounds + 1):
            for threads, durations in seconds.items():
                torch.set_num_threads(threads)
                start = time.perf_counter()
                model.decode(lines, mode=mode, batch_size=1)
                if number > 0:  # the first one warms up
                    durations.append(time.perf_counter() - start)
        one, several = (statistics.median(durations) for durations in seconds.values())
        row += f" | {mode}: {one:6.3f} {several:7.3f}  {several / one:5.2f}"
    print(row)


def half_a_core() -> None:
    """Puts this process into a cgroup that may use half of one core."""
    first = (CGROUPS / "cpu").exists()  # version 1 of cgroups
    folder = CGROUPS / ("cpu" if first else "") / "aggdec_half_a_core"
    folder.mkdir(exist_ok=True)
    (folder / ("cpu.cfs_quota_us" if first else "cpu.max")).write_text(
        "50000" if first else "50000 100000"
    )
    (folder / "cgroup.procs").write_text(str(os.getpid()))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rounds", type=int, default=5, help="runs of each kind, after a first one"
    )
    parser.add_argument("--modes", nargs="+", default=["greedy", "iad"])
    parser.add_argument("--precision", default="fp32", choices=["fp32", "int8"])
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        measure(args.modes, args.precision, args.rounds)
        return
    print(
        f"seconds with one thread and with all, and their ratio; load of the last minute {os.getloadavg()[0]:.1f}"
    )
    # the rows: processes that only use a core, and what is done before measuring
    rows: list[tuple[str, int, Callable[[], None] | None]] = [
        ("quiet", 0, None),
        ("one core busy", 1, None),
        ("all cores busy", os.cpu_count() or 1, None),
    ]
    rows += [
        ("on CPU 0 alone", 0, lambda: os.sched_setaffinity(0, {0})),
        ("half a core", 0, half_a_core),
    ]
    # each in a process of its own
    for name, hogs, before in rows:
        busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(hogs)]
        try:
            command = [sys.executable, *sys.argv, "--measure"]
            done = subprocess.run(
                command,
                preexec_fn=before,
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            print(f"{name:15}" + done.stdout.rstrip(), flush=True)
        except subprocess.SubprocessError:
            print(f"{name:15} could not be made here", flush=True)
        finally:
            for process in busy:
                process.kill()


if __name__ == "__main__":
    main()
