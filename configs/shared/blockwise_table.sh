# The stage `blockwise_table`, papers/004 Table 1 and Figure 4: block sizes x (regular, distilled, fine-tuned, both), and the
# base models, each model in work/EXPERIMENT/blockwise_table/NAME with the measurement of each block size beside it; the table is
# work/EXPERIMENT/blockwise_table/table.md, of all sizes that were measured, drawn in scatter.png and speed.png beside it. The
# experiment sets `regular_base`, `distilled_base` (names of models), `distilled` (data), `blockwise_reference` and `blockwise_bench` (options of aggdec bench), and defines
# `train_heads NAME HEADS DATA BASE [hydra overrides]`, which leaves blockwise_table/NAME/model.pt.
# shellcheck shell=bash disable=SC2154,SC2034
blockwise_sizes="${BLOCKWISE_SIZES:-2 4 6 8 10}"
blockwise_limit="${BLOCKWISE_LIMIT:-500}" # number of sentences to decode
blockwise_fine_tuning=(model.freeze_base=false)
# 1: the heads of a frozen base are trained once, for the largest block, and the fine-tuned models start from the first of
# them: untrained heads would spoil the base in the first updates, and a short training does not repair that.
one_frozen_model=0

stage_blockwise_table() {
    local k largest="${blockwise_sizes##* }" frozen
    local from_regular="$regular_base" from_distilled="$distilled_base"
    if ((one_frozen_model)); then
        from_regular="blockwise_table/regular-$largest" from_distilled="blockwise_table/distilled-$largest"
    fi
    for k in $blockwise_sizes; do
        frozen=$((one_frozen_model ? largest : k))
        train_heads "regular-$frozen" "$frozen" "$work/data-bin" "$regular_base"
        train_heads "distilled-$frozen" "$frozen" "$distilled" "$distilled_base"
        train_heads "fine-tuned-$k" "$k" "$work/data-bin" "$from_regular" "${blockwise_fine_tuning[@]}"
        train_heads "both-$k" "$k" "$distilled" "$from_distilled" "${blockwise_fine_tuning[@]}"
    done
    # measured one after another, after all training
    if ((!one_frozen_model)); then # then the new layer is trained for one head, too
        measure_heads base regular "$regular_base"
        train_heads regular-1 1 "$work/data-bin" "$regular_base"
        train_heads distilled-1 1 "$distilled" "$distilled_base"
        measure_heads regular 1 blockwise_table/regular-1
        measure_heads distilled 1 blockwise_table/distilled-1
    fi
    for k in $blockwise_sizes; do
        frozen=$((one_frozen_model ? largest : k))
        measure_heads regular "$k" "blockwise_table/regular-$frozen"
        measure_heads distilled "$k" "blockwise_table/distilled-$frozen"
        measure_heads fine-tuned "$k" "blockwise_table/fine-tuned-$k"
        measure_heads both "$k" "blockwise_table/both-$k"
    done
    own_table blockwise_table --output "$work/blockwise_table/table.md" \
        --figure "$work/blockwise_table/scatter.png" --figure "$work/blockwise_table/speed.png"
}

# Decodes with a block size unless that is done: measure_heads COLUMN HEADS MODEL, or measure_heads base COLUMN MODEL.
measure_heads() {
    local output="$work/blockwise_table/$1-$2.json" modes=(--modes greedy)
    if is_done "$output" BLOCKWISE_LIMIT "$work/$3/model.pt"; then
        return
    fi
    echo "== blockwise_table: $1-$2" >&2
    if [[ $1 != base && $2 != 1 ]]; then
        modes=(--block-size "$2" --modes greedy,blockwise,blockwise:2,blockwise:3)
    fi
    python -m fairseq_aggdec.cli.verbs bench "$work/data-bin" --path "$work/$3/model.pt" "${modes[@]}" \
        --limit "$blockwise_limit" --no-memory "${blockwise_bench[@]}" --json "$output"
}
