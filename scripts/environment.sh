# Sourced by the scripts that run Python: the repository's root, its virtual environment and its package.
# shellcheck shell=bash disable=SC2034
set -euo pipefail

root="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)"
shared="$root/configs/shared" # parts that several experiments are made of
if [[ -d "$root/.venv/bin" ]]; then
    PATH="$root/.venv/bin:$PATH"
fi
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
