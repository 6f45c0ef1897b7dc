# Models of configs/tatoeba_en_de on paragraphs of help pages: a verifier, and drafters of several k that learn from its
# output, each for the same number of updates (papers/000 Table 6).
# shellcheck shell=bash disable=SC2034,SC2154
train_options=(--of tatoeba_en_de)
source "$root/configs/tatoeba_en_de/stages.sh"
stages=(prepare verifier redistill block_sizes score table)
further_stages=("${measuring_stages[@]}")
block_sizes="${BLOCK_SIZES:-5 10 15 25}" block_sizes_set=test
drafter="$work/ablation/k25/model.pt"
ablation_updates="${ABLATION_UPDATES:-2500}" ablation_every="${ABLATION_EVERY:-500}"
BENCH_LIMIT="${BENCH_LIMIT:-200}"

# on the original pairs
stage_verifier() {
    run_model teacher --as verifier dataset.max_tokens=4000 checkpoint.save_interval_updates=100 \
        --updates 4500
}
