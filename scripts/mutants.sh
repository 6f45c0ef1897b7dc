#!/usr/bin/env bash
# Put seeded faults into copies of the package, one by one: the tests must find each. Prints a table.
# usage: bash scripts/mutants.sh [WORD ...]      only faults whose description has one of the words
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bash scripts/setup.sh
exec .venv/bin/python -m tests.support.mutants "$@"
