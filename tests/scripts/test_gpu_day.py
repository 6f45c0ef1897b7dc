"""What scripts/gpu_day.sh would run on a machine with a GPU."""

import os
import subprocess
from pathlib import Path

from fairseq_aggdec.cli.verbs import parse

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("right", "base", "profile", "large", "memory", "loops", "passes", "shipped")
VERBS = ["python", "-m", "fairseq_aggdec.cli.verbs"]


def test_every_command_of_a_day_is_known_and_begins_without_the_console_script(
    tmp_path: Path,
) -> None:
    """Each is begun by `timeout`, which here only writes it down."""
    (tmp_path / "timeout").write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/commands\n')
    (tmp_path / "timeout").chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "OUT": str(tmp_path),
    }
    subprocess.run(
        ["bash", "scripts/gpu_day.sh", *PARTS],
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
    )
    commands = [
        line.split()[2:] for line in (tmp_path / "commands").read_text().splitlines()
    ]
    ours = [words[3:] for words in commands if words[:3] == VERBS]
    assert {parse(words).__class__.__name__ for words in ours} == {"Bench", "Verify"}
    assert not any(words[0] == "aggdec" for words in commands)
