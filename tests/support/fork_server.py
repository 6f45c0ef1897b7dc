"""Processes that have imported PyTorch and fairseq already, for tests that start many commands.

Importing both takes a process three to five seconds of processor time, and a stage script starts a dozen processes. A
server imports them once and forks for each command; what is forked runs the command's own console script, in a process
of its own. `environment` is a virtual environment for scripts to use, with stand-ins for the console scripts.

    python -m tests.support.fork_server SOCKET       ends with its standard input
"""

import atexit
import contextlib
import gc
import io
import json
import logging
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

CLIENT = Path(__file__).with_name("fork_client.py")
SHARED = "TESTS_FORK_SERVER"
"""the folder of a server that another process has started"""
_PRELOADED = (
    "torch", "fairseq.tasks", "fairseq.models", "fairseq.criterions", "fairseq.optim.lr_scheduler", "fairseq.trainer",
    "fairseq.sequence_generator", "fairseq.checkpoint_utils", "hydra.core.config_store", "hydra.experimental",
    "sacrebleu", "sacremoses", "torch._dynamo", "matplotlib.figure", "tqdm", "fairseq.models.transformer",
    "multiprocessing.spawn",  # which starts Python itself, with files that it inherits
)  # fmt: skip
"""not this package: `--user-dir` refuses what is imported already, and not fairseq's commands, which set up the log"""


def start() -> None:
    """Starts the server whose commands this process and all that it starts share."""
    os.environ[SHARED] = str(environment())


@cache
def environment() -> Path:
    """A folder like that of a virtual environment; behind the commands of its `bin` is a server, which ends with us."""
    if SHARED in os.environ:
        return Path(os.environ[SHARED])
    folder = Path(tempfile.mkdtemp(prefix="commands-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "bin").mkdir()
    path, scripts = folder / "socket", Path(sysconfig.get_path("scripts"))
    for script in scripts.iterdir():
        if script.name == "python" or (
            script.is_file() and script.read_bytes().startswith(b"#!" + bytes(scripts))
        ):
            stand_in = folder / "bin" / script.name
            stand_in.write_text(
                f'#!/bin/sh\nexec "{sys.executable}" -I -S "{CLIENT}" "{path}" "{script}" "$@"\n'
            )
            stand_in.chmod(0o755)
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.support.fork_server", path], cwd=CLIENT.parents[2], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert server.stdin is not None
    assert server.stdout is not None
    atexit.register(server.stdin.close)
    assert server.stdout.readline() == b"ready\n"
    return folder


def main() -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(sys.argv[1])
        listening.listen(64)
        print("ready", flush=True)  # for those who can wait
        # what they say while they are imported is of no test
        logging.disable(logging.INFO)
        for name in _PRELOADED:
            __import__(name)
        logging.disable(logging.NOTSET)
        gc.collect()
        gc.freeze()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for supervisors
        while True:
            ready, _, _ = select.select([listening, sys.stdin], [], [])
            if sys.stdin in ready:
                return
            connection, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                break
            connection.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _supervise(connection)


def _supervise(connection: socket.socket) -> None:
    """Fork the command that is asked for, pass signals on to it, and say how it ended."""
    size, streams, _, _ = socket.recv_fds(connection, 4, 3)
    message = b""
    while len(message) < int.from_bytes(size, "big"):
        message += connection.recv(1 << 16)
    request = json.loads(message)
    child = os.fork()
    if child == 0:
        connection.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        _run(request)
    for stream in streams:
        os.close(stream)
    ended = os.pidfd_open(child)
    while True:
        ready, _, _ = select.select([connection.fileno(), ended], [], [])
        if ended in ready:
            break
        # a signal's number, or nothing where nobody is left who would take the answer
        passed_on = connection.recv(1)
        os.kill(child, passed_on[0] if passed_on else signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(BrokenPipeError):
        connection.sendall(status.to_bytes(4, "big"))
    os._exit(0)


def _run(request: dict[str, Any]) -> NoReturn:
    """In the child: become the command."""
    command, environment = request["command"], request["environment"]
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # the environment names it
    os.chdir(request["folder"])
    output, errors = (io.BufferedWriter(io.FileIO(number, "w")) for number in (1, 2))
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0)), "utf-8")
    sys.stdout = io.TextIOWrapper(output, "utf-8", line_buffering=os.isatty(1))
    sys.stderr = io.TextIOWrapper(
        errors, "utf-8", "backslashreplace", line_buffering=True
    )
    import torch

    torch.set_num_threads(
        int(environment.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
    )
    first, *arguments = command
    # what the command starts is forked as well
    sys.executable = str(Path(sys.argv[1]).with_name("bin") / "python")
    given = [
        part for part in environment.get("PYTHONPATH", "").split(os.pathsep) if part
    ]
    if Path(first).name == "python":
        sys.path[:] = [os.getcwd(), *given, *sys.path[1:]]
        option, what, *rest = arguments
        sys.argv = [option, *rest]
        _end(
            lambda: (
                runpy.run_module(what, run_name="__main__", alter_sys=True)
                if option == "-m"
                else _execute(what)
            )
        )
    sys.path[:] = [str(Path(first).parent), *given, *sys.path[1:]]
    sys.argv = [first, *arguments]
    # they set up the log before they import
    if Path(first).name in ("fairseq-train", "fairseq-hydra-train"):
        logging.root.handlers.clear()
    _end(lambda: runpy.run_path(first, run_name="__main__"))


def _execute(program: str) -> None:
    exec(program, {"__name__": "__main__"})


def _end(run: Callable[[], object]) -> NoReturn:
    """Run a program and end as Python does, but leave all modules as they are: to take them apart is most of the time
    that a short command takes, since each of the server's memory pages is copied first."""
    status: object = None
    try:
        run()
    except SystemExit as exit_:
        status = exit_.code
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if not isinstance(status, int | None):
        print(status, file=sys.stderr)
        status = 1
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    sys.stderr.flush()
    os._exit((status or 0) & 255)


if __name__ == "__main__":
    main()
