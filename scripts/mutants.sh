#!/usr/bin/env bash
# Put seeded faults into copies of the package, one by one: the tests must find each.
# usage: bash scripts/mutants.sh [-k WORD]      only faults whose description has the word
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bash scripts/setup.sh
ALL_FAULTS=yes exec .venv/bin/python -m pytest -v tests/repository/test_mutants.py "$@"
