# Functions for the stages of all experiments of full size.
# shellcheck shell=bash disable=SC2154,SC2034
source "$shared/measuring.sh"
source "$shared/decode_pair.sh"
# As in the papers' tables, and as this plugin is used on a GPU: a set is decoded and timed in both precisions.
if [[ -z "${PRECISIONS:-}" ]] && has_gpu; then PRECISIONS="fp32 fp16"; fi
PRECISIONS="${PRECISIONS:-fp32}"
gpus="${GPUS:-$( (nvidia-smi --list-gpus 2>/dev/null || true) | wc -l)}" # number of GPUs for training and distillation

# The hydra overrides that keep the papers' batch size on the available GPUs: same_batch GPUS UPDATE_FREQUENCY, as in the papers.
# More GPUs than parts of the batch are not used; where their number does not divide it, the batch is a little larger.
same_batch() {
    local used=$((gpus < $1 * $2 ? gpus : $1 * $2))
    if ((gpus == 0)); then
        echo "error: no GPU is found, and $experiment is of full size; its stand-in runs on a CPU:" \
            "bash scripts/reproduce.sh $experiment --small" >&2
        exit 1
    fi
    echo "distributed_training.distributed_world_size=$used"
    echo "optimization.update_freq=[$((($1 * $2 + used - 1) / used))]"
}

# Trains a model of full size: run_full PAPER-GPUS PAPER-UPDATE-FREQUENCY CONFIG [--as MODEL] [arguments of train.sh].
run_full() {
    local batch
    batch="$(same_batch "$1" "$2")"
    shift 2
    # shellcheck disable=SC2086 # two words
    run_model "$@" $batch
}

# Writes the training targets of teachers with the papers' beam of 5: distil FOLDER TEACHER... (names of models).
distil() {
    local output="$work/$1/data-bin" teachers=""
    shift
    teachers="$(printf ":$work/%s/model.pt" "$@")"
    distill --output "$output" --teacher "${teachers#:}" --workers "$((gpus > 1 ? gpus : 1))" --fp16 "${search[@]}"
}
search=(--beam 5)
