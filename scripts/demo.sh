#!/usr/bin/env bash
# Set up if needed, then decode sentences with an embedded model: beam search, greedy and aggressive decoding compared.
# usage: bash scripts/demo.sh [--task gec|mt] [SENTENCE ...] [OPTIONS]      bash scripts/demo.sh --help lists them
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
bash "$root/scripts/setup.sh"
echo "demo: about half a minute on two quiet cores, at most a minute and a half on busy ones; the results come at the end" >&2
exec "$root/.venv/bin/aggdec" demo "$@"
