#!/usr/bin/env bash
# Set up if needed, then correct sentences with the embedded model: beam search, greedy and aggressive decoding compared.
# usage: bash scripts/demo.sh [SENTENCE | FILE | -] [OPTIONS]      bash scripts/demo.sh --help lists them
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bash "$root/scripts/setup.sh"
exec "$root/.venv/bin/aggdec-demo" "$@"
