# Stages of an experiment with one model, train.yaml, that corrects or rewrites its input.
# shellcheck shell=bash disable=SC2154,SC2034
source "$shared/measuring.sh"
stages=(prepare train decode score bench table)
further_stages=("${measuring_stages[@]}")
model="$work/model.pt"

stage_prepare() { prepare; }
stage_train() { run_model train; }

stage_decode() {
    local mode
    for mode in beam5 beam1 greedy iad; do
        run decode --decoding "$mode"
    done
}

stage_score() { score; }
