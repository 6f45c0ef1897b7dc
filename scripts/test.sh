#!/usr/bin/env bash
# Set up if needed, then check style, types and behaviour.
# usage: bash scripts/test.sh [--all] [PYTEST ARGUMENTS]      AGGDEC_DATA names the folder of the data sets (else ../shared/data)
#   Without arguments: what fits into five minutes on two quiet cores.
#   --all: the slow tests, too (a wheel, the stage scripts, long fuzzing, all families), and a few of the tests under
#   Python 3.12 where there is one. With arguments only these tests are run, under one Python.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
bin=.venv/bin

# one process and one thread a core
export OMP_NUM_THREADS=1
export PYTHONDONTWRITEBYTECODE= # compiled modules are kept: dozens of processes import them
all=
if [[ ${1:-} == --all ]]; then
    all=yes
    shift
fi
chosen=("$@")
if (($# == 0)); then
    [[ -n $all ]] || chosen=(-m "not slow")
    minutes=${all:+twelve}
    echo "test: ${minutes:-five} minutes on two quiet cores; longer where .venv has to be made" >&2
fi

other= log=
made_of=$bin/python # or what scripts/setup.sh tries first
[[ -x $made_of ]] || made_of=${PYTHON:-python3.12}
if [[ -n $all ]] && (($# == 0)) &&
    [[ $("$made_of" -c 'import sys; print(sys.version_info[1])' 2>/dev/null) != 12 ]]; then
    # begins beside the set-up, most of which keeps one core busy
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
run python -u -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder "${chosen[@]}" || failed=$?
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
