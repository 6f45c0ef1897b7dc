"""Runs one Python command in a process forked from `tests.support.fork_server`.

    python -I -S fork_client.py SOCKET FILE ARGUMENTS

FILE is a console script, or `python`, which is forked where `-m` or `-c` follows and started as usual where not. The
command has the arguments, folder, environment, standard streams, signals and exit code that it would have otherwise.
"""

import json
import os
import signal
import socket
import sys

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> None:
    path, *command = sys.argv[1:]
    is_python = os.path.basename(command[0]).startswith("python")
    if is_python and command[1:2] not in (["-m"], ["-c"]):
        os.execv(command[0], command)
    request = {
        "command": command,
        "folder": os.getcwd(),
        "environment": dict(os.environ),
    }
    message = json.dumps(request).encode()
    with socket.socket(socket.AF_UNIX) as server:
        for number in FORWARDED:
            signal.signal(number, lambda number, frame: server.send(bytes([number])))
        server.connect(path)
        socket.send_fds(server, [len(message).to_bytes(4, "big")], [0, 1, 2])
        server.sendall(message)
        answer = server.recv(4)
    status = int.from_bytes(answer, "big")
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) in FORWARDED:
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status) if answer else 1)


if __name__ == "__main__":
    main()
