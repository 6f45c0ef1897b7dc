# The stage `hybrid` of an experiment with one model that mostly copies its input: times `--decoding hybrid` beside `iad`,
# without a drafter; work/EXPERIMENT/bench/hybrid-SUBSET.json. The experiment may set `hybrid_subsets`, the test sets.
# shellcheck shell=bash disable=SC2154,SC2034
further_stages+=(hybrid)
hybrid_subsets=(test)

stage_hybrid() {
    local subset
    for subset in "${hybrid_subsets[@]}"; do
        run decode --decoding hybrid --subset "$subset"
        modes=beam5,beam1,greedy,iad,hybrid measure "hybrid-$subset" --gen-subset "$subset"
    done
}
