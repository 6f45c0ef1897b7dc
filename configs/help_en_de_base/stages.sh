# Base size on long sentences, for one GPU: models of configs/tatoeba_en_de that are trained for minutes. `scripts/gpu_day.sh
# evidence` runs these stages, trainings side by side. UPDATES, TRAIN_HOURS, BENCH_LIMIT and REHEARSE shorten them.
# shellcheck shell=bash disable=SC2034,SC2154
source "$root/configs/tatoeba_en_de/stages.sh"
source "$shared/base_size.sh"
base_size tatoeba_en_de
stages=(prepare verifier redistill drafter papers_drafter heads bench bench_papers bench_heads decode score table)
further_stages=()
average_last=3 papers_training=(train_for 800)
validated=dataset.validate_interval_updates=100
distilled_sets=train,valid decoding_limits=(--max-len-a 1.5 --max-len-b 10)
if [[ -n "${REHEARSE:-}" ]]; then # untrained models speak until they are stopped
    distilled_sets=valid decoding_limits=(--max-len-b 12)
fi
targets=""
if [[ -n "${TRAIN_HOURS:-}" && ! -d "$redistilled" ]]; then # rather other targets than no drafters
    redistilled="$work/data-bin" targets="trained on references, not distilled"
fi

stage_verifier() { train_for 1400 teacher --as verifier "${sizes[@]}" 'optimization.lr=[0.001]' "$validated"; }

stage_redistill() {
    distill --output "$redistilled" --teacher "$model" --beam 1 --subset "$distilled_sets" --workers "${WORKERS:-6}" \
        --max-tokens 12000 --shard-sentences 2000 "${decoding_limits[@]}" ${half[@]+"${half[@]}"}
}

# Says, and leaves in FOLDER/targets for the tables, what a drafter is trained on where that is not the verifier's output:
# say_targets FOLDER.
say_targets() {
    local place="$work/$1"
    if [[ -n "$targets" && ! -f "$place/model.pt" ]]; then
        echo "$experiment: stage redistill has not ended: $1 is $targets" >&2
        mkdir -p "$place"
        echo "$targets" >"$place/targets"
    elif [[ ! -f "$place/model.pt" && ! -f "$place/checkpoints/checkpoint_last.pt" ]]; then
        rm -f -- "$place/targets" # said of a drafter that has been deleted
    fi
}

stage_drafter() {
    say_targets drafter
    train_for 800 drafter --data "$redistilled" "model.encoder_from=$model" 'optimization.lr=[0.001]' "$validated"
}

stage_papers_drafter() {
    say_targets papers-drafter-6-25
    train_papers_drafter 6-25 'optimization.lr=[0.0005]' "$validated"
}

stage_heads() {
    say_targets blockwise
    train_for 800 blockwise --data "$redistilled" "model.base_checkpoint=$model" model.block_heads=6 "$validated"
}

# papers/000 Table 5, all rounds in turns; then the papers' drafter and the heads, beside `greedy`
stage_bench() {
    modes="beam5,greedy,nar,gad,gad++:3:1,gad++:5:3,aggressive-beam:5" timed bench
}
stage_bench_papers() {
    drafter="$work/papers-drafter-6-25/model.pt" modes="greedy,nar,gad,gad++:3:1,gad++:5:3" timed papers-drafter-6-25
    own_table papers_drafter --output "$work/papers-drafter.md"
}
stage_bench_heads() { model="$work/blockwise/model.pt" drafter="" modes="greedy,blockwise" timed heads; }

# timed NAME
timed() {
    BENCH_LIMIT="${BENCH_LIMIT:-64}" measure "$1" --batch-sizes 1,8,32 --repeats 2 --no-profile --no-memory \
        --reference "$work/text/test.$target" "${decoding_limits[@]}" ${half[@]+"${half[@]}"}
}

# the whole test set
stage_decode() {
    decode_aside test beam5 beam1 greedy "nar --drafter-path $drafter" "gad --drafter-path $drafter" \
        "gad++ --label gad++-3-1 --top-beta 3 --tolerance 1 --drafter-path $drafter" \
        "gad++ --label gad++-5-3 --top-beta 5 --tolerance 3 --drafter-path $drafter"
}
