# The stages `blockwise`, `blockwise_tuned` and `blockwise_table`, for stages.sh: heads on the verifier, the verifier trained on with
# its heads, and papers/004 Table 1 in small.
# shellcheck shell=bash disable=SC2154,SC2034

# Heads on the frozen verifier, trained on its own output: the translation stays that of the verifier.
stage_blockwise() {
    run_model blockwise --data "$redistilled" "model.base_checkpoint=$work/verifier/model.pt"
    local model="$work/blockwise/model.pt"
    run decode --decoding blockwise --model "$model"
    run decode --decoding blockwise --label blockwise-top2 --top-beta 2 --model "$model"
    run decode --decoding blockwise --label blockwise-min2 --min-block 2 --model "$model"
}

# Six heads and the verifier trained on together (papers/004 §6.1), on the verifier's own output: more tokens are accepted, and the
# translation is a new model's. First the heads alone for a short time, since untrained heads would spoil the base.
stage_blockwise_tuned() {
    local heads=(--data "$redistilled" model.block_heads=6 model.head_ffn_embed_dim=1024)
    average_last=1 run_model blockwise --as blockwise-frozen "${heads[@]}" \
        "model.base_checkpoint=$work/verifier/model.pt" criterion.heads_per_step=5 dataset.validate_interval_updates=150 \
        optimization.max_update=150 lr_scheduler.total_num_update=150 lr_scheduler.warmup_updates=50 \
        checkpoint.save_interval_updates=150
    run_model blockwise --as blockwise-tuned "${heads[@]}" "model.base_checkpoint=$work/blockwise-frozen/model.pt" \
        model.freeze_base=false model.dropout=0.1 criterion.heads_per_step=6 dataset.validate_interval_updates=300 \
        optimization.max_update=1900 lr_scheduler.total_num_update=1900 lr_scheduler.warmup_updates=100 \
        "optimization.lr=[0.0007]" lr_scheduler.end_learning_rate=0.00003 \
        checkpoint.best_checkpoint_metric=loss checkpoint.maximize_best_checkpoint_metric=false
    local model="$work/blockwise-tuned/model.pt" block
    run decode --decoding greedy --label blockwise-tuned-greedy --model "$model"
    run decode --decoding blockwise --label blockwise-tuned --model "$model"
    run decode --decoding blockwise --label blockwise-tuned-top2 --top-beta 2 --model "$model"
    run decode --decoding blockwise --label blockwise-tuned-top3 --top-beta 3 --model "$model"
    for block in 2 3; do # papers/004 §7.1, on the development set
        run decode --subset valid --decoding blockwise --label "blockwise-tuned-min$block" --min-block "$block" --model "$model"
    done
    run decode --subset valid --decoding blockwise --label blockwise-tuned --model "$model"
}

# The block sizes of papers/004 Table 1. The heads of a frozen base learn independently of one another here (own_hidden),
# so those of the largest block serve for all.
source "$shared/blockwise_table.sh"
blockwise_updates="${BLOCKWISE_UPDATES:-1500}" # of a frozen base's heads
fine_tuning_updates="${FINE_TUNING_UPDATES:-$((blockwise_updates / 3))}"
regular_base=teacher distilled_base=verifier one_frozen_model=1
blockwise_bench=(--threads 2 --reference "$work/text/test.$target")
blockwise_fine_tuning+=(model.dropout=0.1 "optimization.lr=[0.0003]" lr_scheduler.end_learning_rate=0.00003)

# Trains heads unless that is done: train_heads NAME HEADS DATA BASE [hydra overrides].
train_heads() {
    local name="$1" heads="$2" train_data="$3" base="$4" updates="$blockwise_updates"
    shift 4
    if [[ "$base" == blockwise_table/* ]]; then
        updates="$fine_tuning_updates"
    fi
    run_variant blockwise "$train_data" "$work/blockwise_table/$name" "$updates" $((updates / 3)) \
        "model.base_checkpoint=$work/$base/model.pt" "model.block_heads=$heads" "$@"
}
