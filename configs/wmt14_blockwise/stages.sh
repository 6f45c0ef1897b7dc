# Blockwise parallel decoding of WMT14 English-German (papers/004 §7.1, Tables 1 and 4, Figure 4).
# shellcheck shell=bash disable=SC2154,SC2034
source "$shared/full_size.sh"
source "$shared/blockwise_table.sh"
stages=(prepare base distill blockwise_table decode score bench table)
further_stages=("${measuring_stages[@]}")
distilled="$work/distilled/data-bin"
regular_base=base distilled_base=base # one baseline for both kinds of pairs: "on top of this" (papers/004 §7.1)
model="$work/blockwise_table/both-8/model.pt" modes="beam5,beam1,greedy,blockwise,blockwise:2,blockwise:3"
trace_decodings=blockwise
search=(--beam 4 --lenpen 0.6) # of Vaswani et al. 2017, as papers/004 §6.2 has it
blockwise_limit="${BLOCKWISE_LIMIT:-3000}" # all of newstest2013
blockwise_bench=(--gen-subset valid --reference "$work/text/valid.de")
if ((gpus)); then
    blockwise_bench+=(--device cuda)
fi

stage_prepare() { prepare; }
stage_base() { run_full 8 1 base; }

# The teacher differs from the base model in its seed alone.
stage_distill() {
    run_full 8 1 base --as teacher common.seed=2
    distil distilled teacher
}

# Trains heads unless that is done: train_heads NAME HEADS DATA BASE [hydra overrides].
train_heads() {
    local name="$1" heads="$2" train_data="$3" base="$4"
    shift 4
    run_full 8 1 blockwise --as "blockwise_table/$name" --data "$train_data" \
        "model.base_checkpoint=$work/$base/model.pt" "model.block_heads=$heads" "$@"
}

# The best models on the test set (papers/004 Table 4), k = 1 being one trained head. That of 8 heads also with a least block
# (papers/004 §5.3), on the development set, too (§7.1).
stage_decode() {
    local k subset least
    run decode --decoding beam1 --model "$work/base/model.pt" --label base-beam1
    run decode --decoding greedy --model "$work/blockwise_table/distilled-1/model.pt" --label distilled-1
    for k in $blockwise_sizes; do
        run decode --decoding blockwise --model "$work/blockwise_table/both-$k/model.pt" --label "both-$k"
    done
    run decode --decoding blockwise --model "$model" --label both-8-top2 --top-beta 2
    run decode --subset valid --decoding blockwise --model "$model" --label both-8
    for subset in valid test; do
        for least in 2 3; do
            run decode --subset "$subset" --decoding blockwise --model "$model" --label "both-8-min$least" \
                --min-block "$least"
        done
    done
}

stage_score() { score; }

stage_bench() {
    local k
    model="$work/blockwise_table/distilled-1/model.pt" modes=greedy measure distilled-1
    for k in $blockwise_sizes; do
        model="$work/blockwise_table/both-$k/model.pt" modes=greedy,blockwise measure "both-$k"
    done
}
