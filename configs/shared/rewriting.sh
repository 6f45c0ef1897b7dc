# Stages of a small experiment with one model that rewrites its input, with all decodings of `rewriting_subsets`, the test
# sets, which are decoded 32 sentences at a time: what is scored need not be timed.
# shellcheck shell=bash disable=SC2154,SC2034
source "$shared/single_model.sh"
rewriting_subsets=(test)
modes=beam5,beam1,greedy,iad,hybrid

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
