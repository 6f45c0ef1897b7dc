#!/usr/bin/env bash
# Runs an experiment from raw text to its tables: scripts/reproduce.sh EXPERIMENT [STAGE...]
# Without a STAGE all of configs/EXPERIMENT/stages.sh, in its order. A stage that is done does nothing, a stopped one goes on.
source "$(dirname "$0")/stage.sh"

if [[ ! -f "$config/stages.sh" ]]; then
    echo "configs/$experiment has no stages.sh; run its stages one by one: prepare, train, average, decode, score" >&2
    exit 2
fi

# A stage script of this experiment: run NAME [arguments].
run() {
    local script="$1"
    shift
    echo "== $script.sh $experiment $*" >&2
    bash "$root/scripts/$script.sh" "$experiment" "$@"
}

# Trains and averages a model unless that is done: run_model NAME [arguments of train.sh].
run_model() {
    local name="$1" place
    place="$(model_folder "$1")"
    shift
    if [[ ! -f "$place/model.pt" ]]; then
        run train --config "$name" "$@"
        run average --config "$name"
    fi
}

source "$config/stages.sh"

wanted=("$@")
if ((${#wanted[@]} == 0)); then
    wanted=("${stages[@]}")
fi
for stage in "${wanted[@]}"; do
    if [[ " ${stages[*]} " != *" $stage "* ]]; then
        echo "unknown stage $stage; configs/$experiment has: ${stages[*]}" >&2
        exit 2
    fi
    "stage_$stage"
done
