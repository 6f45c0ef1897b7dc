#!/usr/bin/env bash
# Set up if needed, then decode with random models, options, batches and drafts, and compare with stock fairseq.
# usage: bash scripts/fuzz.sh [--sentences N] [--output FILE]      bash scripts/fuzz.sh --help lists the options
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bash "$root/scripts/setup.sh"
exec "$root/.venv/bin/python" -m fairseq_aggdec.cli.fuzz "$@"
