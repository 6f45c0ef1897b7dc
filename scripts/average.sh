#!/usr/bin/env bash
# Averages the last checkpoints of a model: scripts/average.sh EXPERIMENT [--config NAME] [number, default 5]
# NAME is the model's folder: the name of its configuration, or what train.sh was given by --as.
source "$(dirname -- "${BASH_SOURCE[0]}")/stage.sh"

name=train
if [[ "${1:-}" == --config ]]; then
    name="$2"
    shift 2
fi
place="$(model_folder "$name")"
python -m fairseq_aggdec.cli.verbs average "$place/checkpoints" --last "${1:-5}" --output "$place/model.pt"
