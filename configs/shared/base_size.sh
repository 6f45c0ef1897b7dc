# Small experiments with models of base size, for one GPU in half precision: sets `sizes`, `half` and, with the experiment OF
# whose models they are, `train_options`: base_size OF. TRAIN_HOURS ends each training after that time; it cannot be continued then.
# REHEARSE=1 makes everything tiny, for a CPU: 20 updates, 8 sentences to time.
# shellcheck shell=bash disable=SC2034
base_size() {
    local width=512 tokens=12000 side
    if [[ -n "${REHEARSE:-}" ]]; then
        width=64 tokens=1000
        export UPDATES=20 BENCH_LIMIT=8
    fi
    sizes=() half=() train_options=(--of "$1" common.bf16=false "dataset.max_tokens=$tokens")
    for side in encoder decoder; do
        sizes+=("model.$side.embed_dim=$width" "model.$side.ffn_embed_dim=$((4 * width))" "model.$side.attention_heads=8"
            "model.$side.layers=6")
    done
    python -c "import matplotlib" 2>/dev/null || figures="" # on a borrowed machine
    if has_gpu; then
        train_options+=(common.cpu=false common.fp16=true dataset.num_workers=4)
        half=(--fp16)
    fi
    if [[ -n "${TRAIN_HOURS:-}" ]]; then
        train_options+=("optimization.stop_time_hours=$TRAIN_HOURS" checkpoint.no_save_optimizer_state=true)
    fi
}

# Trains for a number of updates, with a checkpoint every fourteenth of them, of which the last `average_last` are averaged:
# train_for UPDATES CONFIG [arguments of train.sh]. UPDATES in the environment wins.
train_for() {
    local updates="$1" name="$2"
    shift 2
    run_model "$name" "$@" --updates "$updates" \
        "lr_scheduler.warmup_updates=$((updates / 5))" "checkpoint.save_interval_updates=$((updates / 14))"
}

# Decodes a set by several modes at the same time: decode_aside SUBSET "MODE [options]"...; a path in the options has no space.
decode_aside() {
    local subset="$1" mode words jobs=()
    shift
    for mode in "$@"; do
        read -ra words <<<"$mode"
        run decode --subset "$subset" --model "$model" --decoding "${words[@]}" --batch-size 64 ${half[@]+"${half[@]}"} \
            ${decoding_limits[@]+"${decoding_limits[@]}"} &
        jobs+=($!)
    done
    for mode in "${jobs[@]}"; do
        wait "$mode"
    done
}
