#!/usr/bin/env bash
# Set up if needed, then check style, types and behaviour.
# usage: bash scripts/test.sh [PYTEST ARGUMENTS]      AGGDEC_DATA names the folder of the data sets (else ../shared/data)
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
bash scripts/setup.sh
bin=.venv/bin

run() {
    printf '== %s\n' "$*" >&2
    "$bin/$@"
}

run ruff check
run ruff format --check
run mypy
# one process and one thread a core: many tests wait for commands that they start
export OMP_NUM_THREADS=1
export PYTHONDONTWRITEBYTECODE= # compiled modules are kept: hundreds of processes import them
run python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder "$@"
