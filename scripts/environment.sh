# Sourced by the scripts that run Python: the repository's root, its virtual environment and its package.
# shellcheck shell=bash disable=SC2034
set -euo pipefail

root="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)"
shared="$root/configs/shared" # parts that several experiments are made of
venv="${AGGDEC_VENV:-.venv}"
[[ $venv == /* ]] || venv="$root/$venv"
if [[ -d "$venv/bin" ]]; then
    PATH="$venv/bin:$PATH"
fi
export PYTHONPATH="$root:$shared${PYTHONPATH:+:$PYTHONPATH}"
