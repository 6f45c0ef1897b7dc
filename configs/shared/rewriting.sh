# Stages of a small experiment with one model that rewrites its input. All test sets in `rewriting_subsets` are decoded for their
# scores, 32 sentences at a time.
# shellcheck shell=bash disable=SC2154,SC2034
source "$shared/single_model.sh"
rewriting_subsets=(test)
modes=beam5,beam1,greedy,iad

stage_decode() {
    local mode subset
    for subset in "${rewriting_subsets[@]}"; do
        for mode in ${modes//,/ }; do
            run decode --decoding "$mode" --subset "$subset" --batch-size 32 ${decoding_options[@]+"${decoding_options[@]}"}
        done
    done
}

stage_bench() {
    local subset
    for subset in "${rewriting_subsets[@]}"; do
        measure "bench-$subset" --gen-subset "$subset" --threads 2 --limit 200 --no-memory
    done
}
