"""Running the stages of scripts/reproduce.sh with every program replaced by one that writes down how it was called."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

from tests.configs.composing import ROOT

# Exported functions come before the programs on PATH, in all scripts that are started.
_RECORD = """() {
    [[ "$1 $2" != "-m fairseq_aggdec.cli.experiments" ]] || { command python "$@"; return; }
    [[ "$1" != -c ]] || { [[ "$2" != *is_bfloat16_fast* ]] || echo "${RECORDED_PRECISION:-bf16}"; return; }
    local line previous="" word
    printf -v line '%q ' NAME "$@"
    printf '%s\n' "$line" >>"$RECORDED" # at once: several write side by side
    for word in "$@"; do
        if [[ " --output --json --figure " == *" $previous "* ]]; then
            mkdir -p "${word%/*}"
            [[ -e "$word" ]] || echo >"$word"
        fi
        if [[ "$previous" == --results-path ]]; then
            mkdir -p "$word"
            printf 'H-0\t-1\ta\nGenerate test\n' >"$word/generate-test.txt"
            printf 'H-0\t-1\ta\nGenerate test\n' >"$word/generate-valid.txt"
        fi
        if [[ "$word" == checkpoint.save_dir=* ]]; then
            mkdir -p "${word#*=}"
            echo best >"${word#*=}/checkpoint_best.pt"
            echo last >"${word#*=}/checkpoint_last.pt"
        fi
        previous="$word"
    done
}"""
_OTHERS = {
    "nvidia-smi": '() { seq "$RECORDED_GPUS"; }',  # a line each
    # what scripts start most often, without a process: that takes most of their time
    "dirname": '() { local path="${!#}"; echo "${path%/*}"; }',
    "mkdir": '() { [[ -d "${!#}" ]] || command mkdir "$@"; }',
    "flock": "() { :; }",
}


def recorded(experiment: str, *stages: str, folder: Path, gpus: int = 8, check: bool = True) -> list[list[str]]:
    """Runs stages; returns the commands, a list of words each.

    Args:
        folder: an empty one: work, data and the record are put there.
        gpus: how many there seem to be.
        check: fail where a stage does.
    """
    record = folder / "recorded"
    record.touch()
    programs = ("python", "fairseq-hydra-train", "fairseq-generate", "fairseq-interactive", "subword-nmt")
    stubs = {name: _RECORD.replace("NAME", name) for name in programs} | _OTHERS
    environment = {
        **os.environ,
        **{f"BASH_FUNC_{name}%%": body for name, body in stubs.items()},
        "RECORDED": str(record),
        "RECORDED_GPUS": str(gpus),
        "AGGDEC_WORK": str(folder / "work"),
        "AGGDEC_DATA": str(folder / "data"),
    }
    (folder / "data").mkdir(exist_ok=True)
    command = ["bash", str(ROOT / "scripts/reproduce.sh"), experiment, *stages]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    if check:
        assert done.returncode == 0, done.stderr[-3000:]
    return [shlex.split(line) for line in record.read_text().splitlines()]
