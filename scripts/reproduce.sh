#!/usr/bin/env bash
# Runs an experiment from raw text to its tables: scripts/reproduce.sh EXPERIMENT [STAGE...]
# Without a STAGE all `stages` of configs/EXPERIMENT/stages.sh, in its order; its `further_stages` run where they are
# named. A stage that is done does nothing, a stopped one goes on.
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

# Trains one of several variants for a short time unless that is done, and keeps its best checkpoint as FOLDER/model.pt:
# run_variant CONFIG DATA FOLDER UPDATES EVERY [hydra overrides]. EVERY: updates between two looks at the validation set.
run_variant() {
    local name="$1" train_data="$2" place="$3" updates="$4" every="$5"
    shift 5
    if [[ -f "$place/model.pt" ]]; then
        return
    fi
    run train --config "$name" --data "$train_data" "checkpoint.save_dir=$place/checkpoints" "hydra.run.dir=$place/train" \
        "optimization.max_update=$updates" "lr_scheduler.total_num_update=$updates" \
        "lr_scheduler.warmup_updates=$((updates / 10))" "dataset.validate_interval_updates=$every" \
        "checkpoint.save_interval_updates=$every" "checkpoint.keep_interval_updates=1" "$@"
    mv "$place/checkpoints/checkpoint_best.pt" "$place/model.pt"
    rm -r "$place/checkpoints"
}

stages=() further_stages=()
source "$config/stages.sh"

wanted=("$@")
if ((${#wanted[@]} == 0)); then
    wanted=("${stages[@]}")
fi
known="${stages[*]}${further_stages[*]:+ ${further_stages[*]}}"
for stage in "${wanted[@]}"; do
    if [[ " $known " != *" $stage "* ]]; then
        echo "unknown stage $stage; configs/$experiment has: $known" >&2
        exit 2
    fi
done
for stage in "${wanted[@]}"; do
    "stage_$stage"
done
