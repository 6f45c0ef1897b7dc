#!/usr/bin/env bash
# Prints the scores of everything that decode.sh has written: scripts/score.sh EXPERIMENT
source "$(dirname -- "${BASH_SOURCE[0]}")/stage.sh"

python -m fairseq_aggdec.cli.verbs score experiment "$config/prepare.py" --work "$work" --data "$data" "$@"
