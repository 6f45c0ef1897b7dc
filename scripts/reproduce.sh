#!/usr/bin/env bash
# Runs an experiment from raw text to its tables: scripts/reproduce.sh EXPERIMENT [STAGE...] [--small]
#                                                 scripts/reproduce.sh --list
# Without STAGE it runs all `stages` of configs/EXPERIMENT/stages.sh in their order; `further_stages` run only if they
# are named. A finished stage does nothing, a stopped one continues. --small runs the experiment's stand-in on little
# data instead. --list shows the experiments, the tables they repeat, their stand-ins, hours and disk space. --check
# runs nothing and tells whether the stages exist. --dry-run runs nothing either: it prints every command of the stages,
# and the hours, disk space and memory of the experiment. UPDATES=500 in the environment shortens each training to 500
# updates (those of variants: ABLATION_UPDATES, BASELINE_UPDATES, BLOCKWISE_UPDATES, FINE_TUNING_UPDATES,
# SR_HEADS_UPDATES); BENCH_LIMIT=100 times and DECODE_LIMIT=100 decodes only the first 100 sentences of a set:
# FILE.shortened beside each result says so, and so do tables; a run with other settings stops at it. PRECISIONS=fp32 or
# PRECISIONS=fp16 decodes and times an experiment of full size in that alone, where a GPU does so in both.
source "$(dirname -- "${BASH_SOURCE[0]}")/environment.sh"

small=0 check=0 dry=0 arguments=()
for argument in "$@"; do
    case "$argument" in
        --list) exec python -m experiments.about "$root/configs" ;;
        --small) small=1 ;;
        --check) check=1 ;;
        --dry-run) dry=1 ;;
        *) arguments+=("$argument") ;;
    esac
done
set -- ${arguments[@]+"${arguments[@]}"}
if ((dry)); then # in a folder that is deleted afterwards, so that no stage counts as done
    source "$(dirname -- "${BASH_SOURCE[0]}")/dry_run.sh"
fi
source "$(dirname -- "${BASH_SOURCE[0]}")/stage.sh"

if ((small)); then
    stand_ins="$(python -m experiments.about "$root/configs" "$experiment")"
    ran=0
    while read -ra stand_in <&3; do
        if (($#)); then
            stand_in=("${stand_in[0]}" "$@")
            bash "$root/scripts/reproduce.sh" "${stand_in[@]}" --check || continue # this stand-in lacks a stage
        fi
        echo "== $experiment --small: ${stand_in[*]}" >&2
        bash "$root/scripts/reproduce.sh" "${stand_in[@]}"
        ran=1
    done 3<<<"$stand_ins"
    exit $((ran ? 0 : 2))
fi

average_last=5   # number of checkpoints to average
train_options=() # arguments of all trainings

# Runs scripts/NAME.sh for this experiment: run NAME [arguments]. Decoding is in the PRECISIONS of full_size.sh.
run() {
    local script="$1" options=()
    shift
    if [[ "$script" == train ]]; then
        options=(${train_options[@]+"${train_options[@]}"})
    fi
    echo "== $script.sh $experiment $*" >&2
    if [[ "$script" == decode && "${PRECISIONS:-}" == *fp16* ]]; then
        [[ "$PRECISIONS" != *fp32* ]] || bash "$root/scripts/decode.sh" "$experiment" "$@"
        options=(--half)
    fi
    bash "$root/scripts/$script.sh" "$experiment" "$@" ${options[@]+"${options[@]}"}
}

# Raw text to fairseq's binary data. Data sets of full size are downloaded into $AGGDEC_DATA first.
prepare() {
    python -m fairseq_aggdec.cli.verbs prepare "$config/prepare.py" --data "$data" --work "$work" --workers "$(cores)"
}

# Writes a teacher's outputs as training targets unless that is done:
# distill [--teacher FILE[:FILE...]] [--data FOLDER] [--output FOLDER] [further options of aggdec distill]
distill() (
    teacher="$(model_folder teacher)/model.pt" input="$work/data-bin" output="$work/distilled/data-bin" rest=()
    while (($#)); do
        case "$1" in
            --teacher) teacher="$2"; shift 2 ;;
            --data) input="$2"; shift 2 ;;
            --output) output="$2"; shift 2 ;;
            *) rest+=("$1"); shift ;;
        esac
    done
    keep_freed_memory
    is_done "$output" "" "$teacher" "$input" || true # `aggdec distill` itself sees whether all is done
    python -m fairseq_aggdec.cli.verbs distill "$input" "$output" --teacher "$teacher" ${rest[@]+"${rest[@]}"}
)

# Prints the scores of everything that is decoded, and of what a shortened run has decoded which settings shortened it.
score() {
    (cd "$work" && grep -rs "" --include="generate-*.shortened" decode >&2) || true
    python -m fairseq_aggdec.cli.verbs score experiment "$config/prepare.py" --work "$work" --data "$data" "$@"
}

# Trains and averages a model unless that is done: run_model CONFIG [--as MODEL] [arguments of train.sh]. `also_shortened`
# names variables beside UPDATES that shorten the training.
run_model() {
    local name="$1" model="$1" last="$average_last" place epochs
    shift
    if [[ "${1:-}" == --as ]]; then
        model="$2"
        shift 2
    fi
    place="$(model_folder "$model")"
    if is_done "$place/model.pt" "UPDATES TRAIN_HOURS REHEARSE ${also_shortened:-}" "$@"; then
        return
    fi
    if [[ -n "${UPDATES:-}" ]]; then # then the checkpoints of the second half are averaged
        set -- "$@" --updates "$UPDATES" "lr_scheduler.warmup_updates=$(((UPDATES + 3) / 4))" \
            "checkpoint.save_interval_updates=$(((UPDATES + 2 * last - 1) / (2 * last)))"
        last=$((UPDATES < 2 * last ? (UPDATES + 1) / 2 : last))
    fi
    run train --config "$name" --as "$model" "$@"
    epochs=("$place/checkpoints"/checkpoint[0-9]*.pt)
    if [[ -z "${UPDATES:-}" && -f "${epochs[0]}" ]]; then # they are averaged; what was saved within one was for a stop
        rm -f -- "$place/checkpoints"/checkpoint_[0-9]*.pt
    fi
    python -m fairseq_aggdec.cli.verbs average "$place/checkpoints" --last "$last" --output "$place/model.pt"
}

# Trains one of several variants for a short time unless that is done, and keeps a checkpoint as FOLDER/model.pt, the best one
# or, where the caller has set kept_checkpoint=last, the last one:
# run_variant CONFIG DATA FOLDER UPDATES EVERY [hydra overrides]. EVERY: updates between two validations. The learning
# rate rises for a tenth of the updates, but at most for as many as in celeba_sr (those of Tensor2Tensor for images).
# `also_shortened` names the variables that shorten the training.
run_variant() {
    local name="$1" train_data="$2" place="$3" updates="$4" every="$5" warmup=$(($4 > 120000 ? 12000 : ($4 + 9) / 10))
    shift 5
    if is_done "$place/model.pt" "${also_shortened:-}" "$train_data" "$@"; then
        return
    fi
    run train --config "$name" --data "$train_data" --place "$place" --updates "$updates" \
        "lr_scheduler.warmup_updates=$warmup" "dataset.validate_interval_updates=$every" \
        "checkpoint.save_interval_updates=$every" "checkpoint.keep_interval_updates=1" "$@"
    mv "$place/checkpoints/checkpoint_${kept_checkpoint:-best}.pt" "$place/model.pt"
    rm -r "$place/checkpoints"
}

stages=() further_stages=()
if [[ -f "$config/stages.sh" ]]; then
    source "$config/stages.sh"
else
    source "$shared/single_model.sh"
fi

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
if ((check)); then
    exit 0
fi
if ((dry)); then
    python -m experiments.about "$root/configs" "$experiment" needs
fi
for stage in "${wanted[@]}"; do
    "stage_$stage"
done
