# The stages `blockwise` and `blockwise_table`, for stages.sh: heads on the verifier, and papers/004 Table 1 in small.
# shellcheck shell=bash disable=SC2154,SC2034

# Heads on the frozen verifier, trained on its own output: the translation stays that of the verifier.
stage_blockwise() {
    run_model blockwise --data "$redistilled" "model.base_checkpoint=$work/verifier/model.pt"
    local model="$work/blockwise/model.pt"
    run decode --decoding blockwise --model "$model"
    run decode --decoding blockwise --label blockwise-top2 --top-beta 2 --model "$model"
    local tokens # minimum blocks on the development set: papers/004 §7.1
    run decode --subset valid --decoding blockwise --model "$model"
    for tokens in 2 3; do
        run decode --subset valid --decoding blockwise --label "blockwise-min$tokens" --min-block "$tokens" \
            --model "$model"
    done
}

# The block sizes of papers/004 Table 1. The heads of a frozen base learn independently of one another here (own_hidden),
# so those of the largest block serve for all.
source "$shared/blockwise_table.sh"
blockwise_updates="${BLOCKWISE_UPDATES:-1500}" # of a frozen base's heads
fine_tuning_updates="${FINE_TUNING_UPDATES:-$((blockwise_updates / 3))}"
regular_base=teacher distilled_base=verifier one_frozen_model=1
blockwise_bench=(--threads 2 --reference "$work/text/test.$target")
# Head 1 in every update costs 2 BLEU where drawing it like the others costs 7, and more heads cost little time beside the
# base: docs/results/tatoeba_en_de.md.
blockwise_fine_tuning+=(criterion.heads_per_step=5 criterion.first_head_weight=5 model.dropout=0.1
    "optimization.lr=[0.0006]" lr_scheduler.end_learning_rate=0.00001)

# Trains heads unless that is done: train_heads NAME HEADS DATA BASE [hydra overrides].
train_heads() {
    local name="$1" heads="$2" train_data="$3" base="$4" updates="$blockwise_updates" kept_checkpoint=best
    shift 4
    if [[ "$base" == blockwise_table/* ]]; then
        updates="$fine_tuning_updates"
        kept_checkpoint=last # the most accepted tokens would be those of a spoilt base, the best head 1 that of the first updates
    fi
    also_shortened="BLOCKWISE_UPDATES FINE_TUNING_UPDATES" run_variant blockwise "$train_data" "$work/blockwise_table/$name" "$updates" $((updates / 3)) \
        "model.base_checkpoint=$work/$base/model.pt" "model.block_heads=$heads" "$@"
}
