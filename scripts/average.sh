#!/usr/bin/env bash
# Averages the last checkpoints of an experiment: scripts/average.sh EXPERIMENT [number of checkpoints, default 5]
source "$(dirname "$0")/stage.sh"

python -m fairseq_aggdec.cli.average "$work/checkpoints" --last "${1:-5}" --output "$work/model.pt"
