# Base size on long sentences, for one GPU: models of configs/tatoeba_en_de that are trained for minutes. `scripts/gpu_day.sh
# evidence` runs these stages, trainings side by side. UPDATES, TRAIN_HOURS, BENCH_LIMIT and REHEARSE shorten them.
# shellcheck shell=bash disable=SC2034,SC2154
source "$root/configs/tatoeba_en_de/stages.sh"
source "$shared/base_size.sh"
base_size tatoeba_en_de
stages=(prepare verifier redistill drafter papers_drafter heads bench decode score table)
further_stages=()
average_last=3
drafter_options=(dataset.validate_interval_updates=100)
distilled_sets=train,valid decoding_limits=(--max-len-a 1.5 --max-len-b 10)
if [[ -n "${REHEARSE:-}" ]]; then # untrained models speak until they are stopped
    distilled_sets=valid decoding_limits=(--max-len-b 12)
fi

stage_verifier() {
    UPDATES="${UPDATES:-1400}" run_model teacher --as verifier "${sizes[@]}" 'optimization.lr=[0.001]' \
        dataset.validate_interval_updates=200
}

stage_redistill() {
    distill --output "$redistilled" --teacher "$model" --beam 1 --subset "$distilled_sets" --workers "${WORKERS:-6}" \
        --max-tokens 12000 --shard-sentences 2000 "${decoding_limits[@]}" ${half[@]+"${half[@]}"}
}

stage_drafter() {
    UPDATES="${UPDATES:-800}" run_model drafter --data "$redistilled" "model.encoder_from=$model" 'optimization.lr=[0.001]' \
        "${drafter_options[@]}"
}

stage_papers_drafter() {
    UPDATES="${UPDATES:-800}" train_papers_drafter 6-25 'optimization.lr=[0.0005]' "${drafter_options[@]}"
}

stage_heads() {
    UPDATES="${UPDATES:-800}" run_model blockwise --data "$redistilled" "model.base_checkpoint=$model" model.block_heads=6 \
        "${drafter_options[@]}"
}

# One run for papers/000 Table 5, rounds in turns; the papers' drafter and the heads beside this plugin's `greedy`.
stage_bench() {
    local timed=(--batch-sizes 1,8,32 --repeats 2 --no-profile --no-memory --reference "$work/text/test.$target"
        "${decoding_limits[@]}" ${half[@]+"${half[@]}"})
    local BENCH_LIMIT="${BENCH_LIMIT:-64}"
    modes="beam5,greedy,nar,gad,gad++:3:1,gad++:5:3,aggressive-beam:5" measure bench "${timed[@]}"
    drafter="$work/papers-drafter-6-25/model.pt" modes="greedy,nar,gad,gad++:3:1,gad++:5:3" measure papers-drafter-6-25 "${timed[@]}"
    model="$work/blockwise/model.pt" drafter="" modes="greedy,blockwise" measure heads "${timed[@]}"
}

# the whole test set
stage_decode() {
    decode_aside test beam5 beam1 greedy "nar --drafter-path $drafter" "gad --drafter-path $drafter" \
        "gad++ --label gad++-3-1 --top-beta 3 --tolerance 1 --drafter-path $drafter" \
        "gad++ --label gad++-5-3 --top-beta 5 --tolerance 3 --drafter-path $drafter"
}
