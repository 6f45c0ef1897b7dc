#!/usr/bin/env bash
# A part of the tests under another Python, in a virtual environment of its own (.venv-3.12).
# usage: bash scripts/test_python.sh [--few] [PYTHON [PYTEST ARGUMENTS]]     default: python3.12, in the path or of pyenv
#   --few   half a minute of them, as a part of scripts/test.sh: nothing is done where there is no such Python.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

find_python() { # prints nothing where there is none
    local candidate
    for candidate in python3.12 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.12.*/bin/python3.12; do
        if "$candidate" -c '' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return
        fi
    done
}

tests=(tests/compat/test_compat.py tests/generation/test_generator.py tests/bulk tests/decoding tests/tasks
    tests/cli/test_generate.py)
few= processes=2
if [[ ${1:-} == --few ]]; then
    shift
    tests=(tests/generation/test_generator.py tests/decoding/test_loop.py tests/tasks/test_aggressive_translation.py
        tests/cli/test_interactive.py)
    few=yes processes=0
fi

python=${1:-$(find_python)}
if [[ -z $python ]]; then
    echo "test_python: no Python 3.12 found: name one, bash scripts/test_python.sh /path/to/python3.12" >&2
    [[ -n $few ]] && exit 0
    exit 1
fi
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
export AGGDEC_VENV=.venv-$version OMP_NUM_THREADS=1
PYTHON=$python bash scripts/setup.sh
"$AGGDEC_VENV/bin/python" -m pytest --numprocesses "$processes" --dist loadfile "${tests[@]}" "${@:2}"
