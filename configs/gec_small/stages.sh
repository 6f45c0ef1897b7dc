# The stages of the small English correction experiment, for scripts/reproduce.sh; each is a command of its own, too.
# shellcheck shell=bash disable=SC2154,SC2034
source "$shared/single_model.sh"
source "$config/depth.sh"
source "$shared/l_max.sh"
l_max_subset=test2 trace_set=jfleg-test

further_stages+=(depth)

stage_train() { run_model train "checkpoint.finetune_from_model=$plugin/demo/gec/model.pt"; }

# The synthetic test set, and JFLEG's test set (test2), with people's errors.
stage_decode() {
    local mode subset
    for subset in test test2; do
        for mode in beam5 beam1 greedy iad; do
            run decode --decoding "$mode" --subset "$subset"
        done
    done
}

stage_bench() {
    measure bench --gen-subset test2 --threads 2
}
