# The stage `depth`: papers/002 Table 4 in small. Correctors with 12 layers, shared out between encoder and decoder, each
# trained alike as work/gec_small/depth-ENCODER-DECODER, measured on JFLEG's test set (test2); the table is
# work/gec_small/depth/table.md.
# shellcheck shell=bash disable=SC2154,SC2034
depths="${DEPTHS:-6-6 9-3 11-1}" # of the small series in fairseq_aggdec/models/sizes.py

stage_depth() {
    local depth mode
    for depth in $depths; do
        run_model depth --as "depth-$depth" "model._name=transformer_small_${depth/-/_}"
    done
    # measured one after another, after all training
    for depth in $depths; do
        for mode in beam5 greedy; do
            run decode --subset test2 --decoding "$mode" --label "depth-$depth-$mode" --model "$work/depth-$depth/model.pt" \
                --batch-size 32
        done
        COPIES=paper model="$work/depth-$depth/model.pt" modes=beam5,greedy,iad measure "depth-$depth" --gen-subset test2 \
            --threads 2 --limit 300 --no-profile --no-memory >/dev/null
    done
    own_table depth --output "$work/depth/table.md"
}
