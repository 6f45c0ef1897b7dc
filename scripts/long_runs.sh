#!/usr/bin/env bash
# Checks that take too long for the tests (docs/long-runs.md): 50,000 sentences by fairseq-interactive and fairseq-generate,
# and runs that are killed. usage: bash scripts/long_runs.sh [FOLDER] [--sentences N] [--kills N] [--parts PART...]
# Each part writes its results to FOLDER (default work/long-runs) and is not run again; the report comes last.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

folder="$root/work/long-runs"
if (($#)) && [[ "$1" != --* ]]; then
    folder="$1"
    shift
fi
[[ "$folder" == /* ]] || folder="$PWD/$folder"
cd "$root"
exec python -m tests.long_runs "$folder" "$@"
