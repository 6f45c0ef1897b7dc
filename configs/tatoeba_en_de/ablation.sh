# The stage `ablation`: trains drafters that each differ in one setting, for the same short time, and measures them. Each has
# a folder, work/tatoeba_en_de/ablation/NAME; the table is work/tatoeba_en_de/ablation/table.md.
# shellcheck shell=bash disable=SC2154,SC2034
ablation_updates="${ABLATION_UPDATES:-1000}"
ablation_every="${ABLATION_EVERY:-100}" # updates between two validations
block_sizes="5 10 15 20 25 30" block_sizes_set=valid

# The reference has the settings of drafter.yaml (causal prefix, R = 4, two layers, the verifier's encoder, transition head, no
# glancing), without dropout, which so short a training does not need. The other variants name their change.
ablation_base=(
    model.prefix_attention=causal task.blocks_per_sentence=4 model.decoder.layers=2 model.freeze_encoder=true
    model.transition_dim=128 model.dropout=0 criterion.glancing=0 criterion.position_decay=0.8
)
ablation_variants=(
    "base"
    "causal-r1 task.blocks_per_sentence=1"
    "bidirectional-r1 model.prefix_attention=bidirectional task.blocks_per_sentence=1" # each row has one block only
    "causal-r8 task.blocks_per_sentence=8"
    "depth1 model.decoder.layers=1"
    "depth6 model.decoder.layers=6" # the verifier's three layers, and three new ones
    "own-encoder model.freeze_encoder=false" # starts from the verifier's
    "no-transitions model.transition_dim=0"
    "glancing criterion.glancing=0.5:0.3" # as in papers/000; a second pass
)

stage_ablation() {
    local variant
    train_listed "${ablation_variants[@]%% *}"
    # measured one after another, after all training
    for variant in "${ablation_variants[@]}"; do
        measure_variant "${variant%% *}"
    done
    own_table ablation --output "$work/ablation/table.md" # experiment_tables.py says which variants are compared
}

# The reference with each k of `block_sizes`, likewise in work/EXPERIMENT/ablation, by default on the development set: papers/000
# Table 6.
stage_block_sizes() {
    local k name drafter
    run decode --subset "$block_sizes_set" --model "$model"
    for k in $block_sizes; do
        name="k$k"
        if ((k == 10)); then # as in drafter.yaml
            name=base
        fi
        train_variant "$name" "model.block_size=$k"
        drafter="$work/ablation/$name/model.pt"
        run decode --subset "$block_sizes_set" --decoding gad++ --label "gad++-3-1-k$k" --top-beta 3 --tolerance 1 \
            --model "$model" --drafter-path "$drafter"
        modes="beam5,greedy,gad,gad++:3:1" measure "block-size-$k" --gen-subset "$block_sizes_set" --threads 2 --no-profile \
            --no-memory
    done
}

# The verifier, which has three decoder layers, with a drafter of two layers and with one of six, which is to it what a big
# drafter is to a base verifier: papers/000 Table 9, papers/001 Table 5.
stage_mixed() {
    train_listed base depth6
    run decode --decoding beam1 --model "$model"
    decode_drafted two-layers- verifier ablation/base "3 1" "5 3"
    decode_drafted six-layers- verifier ablation/depth6 "3 1" "5 3"
}

# Trains variants of the list above: train_listed NAME...
train_listed() {
    local variant words
    for variant in "${ablation_variants[@]}"; do
        read -ra words <<<"$variant"
        if [[ " $* " == *" ${words[0]} "* ]]; then
            train_variant "${words[@]}"
        fi
    done
}

# Trains one variant unless that is done: train_variant NAME [hydra overrides].
train_variant() {
    local place="$work/ablation/$1"
    shift
    also_shortened=ABLATION_UPDATES run_variant drafter "$redistilled" "$place" "$ablation_updates" "$ablation_every" \
        "model.encoder_from=$work/verifier/model.pt" "common.log_interval=$ablation_every" "${ablation_base[@]}" "$@"
}

# Decodes with one variant unless that is done: measure_variant NAME.
measure_variant() {
    local place="$work/ablation/$1"
    if is_done "$place/bench.json" "" "$work/verifier/model.pt" "$place/model.pt"; then
        return
    fi
    echo "== ablation: $1" >&2
    python -m fairseq_aggdec.cli.verbs bench "$work/data-bin" --path "$work/verifier/model.pt" --drafter-path "$place/model.pt" \
        --modes greedy,gad --limit 200 --threads 2 --profile --no-memory --json "$place/bench.json"
}
