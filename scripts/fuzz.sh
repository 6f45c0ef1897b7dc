#!/usr/bin/env bash
# Set up if needed, then decode random cases (models, options, batches, drafts) and compare with stock fairseq.
# usage: bash scripts/fuzz.sh [--minutes N] [--seed N]      the first case that fails is printed, with its seed
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bash scripts/setup.sh
exec .venv/bin/python -m tests.fuzzing.run "$@"
