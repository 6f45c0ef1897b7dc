#!/usr/bin/env bash
# A part of the tests under another Python, with the optional extra `ray`, in a virtual environment of its own.
# It is not part of scripts/test.sh, since its set-up compiles fairseq again, and Ray takes half a gigabyte.
# usage: bash scripts/test_python.sh [PYTHON [PYTEST ARGUMENTS]]      default: python3.12, in the path or of pyenv
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tests=(tests/test_compat.py tests/test_generator.py tests/distillation/test_translator.py tests/bulk tests/decoding tests/tasks
    tests/cli_integration/test_generate.py)

find_python() {
    local candidate
    for candidate in python3.12 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.12.*/bin/python3.12; do
        if "$candidate" -c '' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    echo "test_python: no Python 3.12 found: name one, bash scripts/test_python.sh /path/to/python3.12" >&2
    exit 1
}

python=${1:-$(find_python)}
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
export AGGDEC_VENV=.venv-$version OMP_NUM_THREADS=1
PYTHON=$python bash scripts/setup.sh
"$AGGDEC_VENV/bin/python" -c 'import ray.data' 2>/dev/null ||
    "$AGGDEC_VENV/bin/python" -m pip install --quiet --disable-pip-version-check --constraint scripts/constraints.txt 'ray[data]'
"$AGGDEC_VENV/bin/python" -m pytest --numprocesses 2 --dist loadfile "${tests[@]}" "${@:2}"
