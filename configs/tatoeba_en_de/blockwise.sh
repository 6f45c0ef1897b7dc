# The stages `blockwise` and `blockwise_table`, for stages.sh: heads on the verifier, and papers/004 Table 1 in small.
# shellcheck shell=bash disable=SC2154,SC2034

# Heads on the verifier, trained on what it says itself: the translation stays the verifier's.
stage_blockwise() {
    run_model blockwise --data "$redistilled" "model.base_checkpoint=$work/verifier/model.pt"
    local model="$work/blockwise/model.pt"
    run decode --decoding blockwise --model "$model"
    run decode --decoding blockwise --label blockwise-top2 --top-beta 2 --model "$model"
    run decode --decoding blockwise --label blockwise-min2 --min-block 2 --model "$model"
}

# Block sizes x (regular, distilled, fine-tuned, both), each model in work/tatoeba_en_de/blockwise_table/NAME with the
# measurement of each block size beside it; the table is work/tatoeba_en_de/blockwise_table/table.md.
blockwise_sizes="${BLOCKWISE_SIZES:-2 4 6 8 10}"
blockwise_updates="${BLOCKWISE_UPDATES:-1500}"
blockwise_limit="${BLOCKWISE_LIMIT:-500}" # sentences that are decoded

stage_blockwise_table() {
    local k largest="${blockwise_sizes##* }"
    # The heads of a frozen base learn independently of one another: those of the largest block serve for all.
    train_heads "regular-$largest" "$largest" "$work/data-bin" teacher
    train_heads "distilled-$largest" "$largest" "$distilled" verifier
    for k in $blockwise_sizes; do
        train_heads "fine-tuned-$k" "$k" "$work/data-bin" teacher "${blockwise_fine_tuning[@]}"
        train_heads "both-$k" "$k" "$distilled" verifier "${blockwise_fine_tuning[@]}"
    done
    # measured one after the other when nothing is trained any more
    for k in $blockwise_sizes; do
        measure_heads regular "$k" "regular-$largest"
        measure_heads distilled "$k" "distilled-$largest"
        measure_heads fine-tuned "$k" "fine-tuned-$k"
        measure_heads both "$k" "both-$k"
    done
    python -m fairseq_aggdec.cli.blockwise_table "$work/blockwise_table" \
        --output "$work/blockwise_table/table.md" --figure "$work/blockwise_table/speed.png"
}

blockwise_fine_tuning=(model.freeze_base=false model.dropout=0.1 "optimization.lr=[0.0005]" lr_scheduler.end_learning_rate=0.00003)

# Trains heads unless that is done: train_heads NAME HEADS DATA BASE [hydra overrides].
train_heads() {
    local name="$1" heads="$2" train_data="$3" base="$4"
    shift 4
    run_variant blockwise "$train_data" "$work/blockwise_table/$name" "$blockwise_updates" $((blockwise_updates / 5)) \
        "model.base_checkpoint=$work/$base/model.pt" "model.block_heads=$heads" "$@"
}

# Decodes with a block size unless that is done: measure_heads COLUMN HEADS NAME.
measure_heads() {
    local output="$work/blockwise_table/$1-$2.json"
    if [[ -f "$output" ]]; then
        return
    fi
    echo "== blockwise_table: $1, $2 heads" >&2
    python -m fairseq_aggdec.cli.bench "$work/data-bin" --path "$work/blockwise_table/$3/model.pt" --block-size "$2" \
        --modes greedy,blockwise,blockwise:2,blockwise:3 --limit "$blockwise_limit" --threads 2 --no-memory \
        --reference "$work/text/test.de" --json "$output"
}
