#!/usr/bin/env bash
# Set up if needed, run all tests and print which share of the package's lines they ran, commands that they start included.
# usage: bash scripts/coverage.sh [PYTEST ARGUMENTS]      takes about twice as long as the tests
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
bash scripts/setup.sh
python=$PWD/.venv/bin/python
"$python" -m pip install --quiet --disable-pip-version-check coverage==7.17.3
export OMP_NUM_THREADS=1
export PYTHONDONTWRITEBYTECODE= # as in scripts/test.sh
export COVERAGE_FILE=$PWD/work/coverage/data
rm -rf -- "${COVERAGE_FILE%/*}"
mkdir -p -- "${COVERAGE_FILE%/*}"
status=0
"$python" -m coverage run -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder "$@" || status=$?
"$python" -m coverage combine --quiet
"$python" -m coverage report --skip-covered --sort cover
exit "$status"
