#!/usr/bin/env bash
# Set up if needed, then check style, types and behaviour; beside that, a few of the tests under Python 3.12 where there is one.
# usage: bash scripts/test.sh [PYTEST ARGUMENTS]      AGGDEC_DATA names the folder of the data sets (else ../shared/data)
#   With arguments only these tests are run, under one Python.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
bin=.venv/bin

# one process and one thread a core: many tests wait for commands that they start
export OMP_NUM_THREADS=1
export PYTHONDONTWRITEBYTECODE= # compiled modules are kept: hundreds of processes import them
(($#)) || echo "test: eleven minutes on two quiet cores; half as long again where .venv or .venv-3.12 has to be made" >&2

other= log=
made_of=$bin/python # or what scripts/setup.sh tries first
[[ -x $made_of ]] || made_of=${PYTHON:-python3.12}
if (($# == 0)) && [[ $("$made_of" -c 'import sys; print(sys.version_info[1])' 2>/dev/null) != 12 ]]; then
    # begins beside the set-up, most of which keeps one core busy: fairseq is compiled for each Python
    log=$(mktemp)
    set -m # a process group of its own, which can be ended as a whole
    bash scripts/test_python.sh --few >"$log" 2>&1 &
    other=$!
    set +m
    trap 'kill -- -"$other" 2>/dev/null || true; rm -f "$log"' EXIT
fi
bash scripts/setup.sh

run() {
    printf '== %s\n' "$*" >&2
    "$bin/$@"
}

run ruff check
run ruff format --check
run mypy
failed=0
run python -u -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder "$@" || failed=$?
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
