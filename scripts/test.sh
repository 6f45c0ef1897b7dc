#!/usr/bin/env bash
# Set up if needed, then check style, types and behaviour; beside that, a few of the tests under Python 3.12 where there is one.
# usage: bash scripts/test.sh [PYTEST ARGUMENTS]      AGGDEC_DATA names the folder of the data sets (else ../shared/data)
#   With arguments only these tests are run, under one Python.
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
# one process and one thread a core: many tests wait for commands that they start
export OMP_NUM_THREADS=1
export PYTHONDONTWRITEBYTECODE= # compiled modules are kept: hundreds of processes import them

other= log=
if (($# == 0)) && [[ $("$bin/python" -c 'import sys; print(sys.version_info[1])') != 12 ]]; then
    log=$(mktemp)
    set -m # a process group of its own, which can be ended as a whole
    bash scripts/test_python.sh --few >"$log" 2>&1 &
    other=$!
    set +m
    trap 'kill -- -"$other" 2>/dev/null || true; rm -f "$log"' EXIT
fi
run mypy
failed=0
run python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder "$@" || failed=$?
if [[ -n $other ]]; then
    printf '== %s\n' "under Python 3.12: bash scripts/test_python.sh --few" >&2
    if wait "$other"; then
        tail -n 1 "$log" >&2
    else
        failed=1
        cat "$log" >&2
    fi
fi
exit "$failed"
