# The stages of the super-resolution experiment, for scripts/reproduce.sh: papers/004 Table 2 in small, on photographs of
# hands. The images are read as they are: there is nothing to prepare.
# SR_SETTING=rgb: 8x8 to 32x32 pixels in colour as in the paper, for a GPU; otherwise grey 4x4 to 16x16.
# shellcheck shell=bash disable=SC2154,SC2034
source "$shared/table.sh"
stages=(base heads fine_tune table)
further_stages=()

images="$data/img-sign-digits/sign_digits_rgb32.npz"
setting="${SR_SETTING:-grey}"
case "$setting" in
    grey) suffix="" heads_updates="${SR_HEADS_UPDATES:-800}" fine_tuning_rate=0.0003 ;;
    rgb) suffix=_rgb heads_updates="${SR_HEADS_UPDATES:-10000}" fine_tuning_rate=0.0001 ;;
    *) echo "SR_SETTING=$setting: grey or rgb" >&2; exit 2 ;;
esac
base_updates=()
if [[ -n "${SR_BASE_UPDATES:-}" ]]; then
    base_updates=(--updates "$SR_BASE_UPDATES"
        "checkpoint.save_interval_updates=$((SR_BASE_UPDATES / 20 + 1))")
fi
block_sizes="${SR_BLOCK_SIZES:-2 4 6 8 10}"
distance="${SR_DISTANCE:-2}"
limit="${SR_LIMIT:-${default_limit:-100}}" # number of images to decode, here all that are held out for testing
models="$work/heads$suffix"
results="$work/table$suffix"

# Overrides for the number of GPUs, which celeba_sr has.
paper_batch() { :; }

stage_base() {
    local batch
    batch="$(paper_batch)"
    # shellcheck disable=SC2086 # no word, or two
    also_shortened=SR_BASE_UPDATES run_model "base$suffix" --data "$images" ${base_updates[@]+"${base_updates[@]}"} $batch
}

stage_heads() {
    local k
    for k in $block_sizes; do
        train_heads "regular-$k" "$k" "$work/base$suffix/model.pt"
    done
}

# Starts from the heads of the frozen base: untrained heads would spoil the base. The checkpoint that is kept is the last one or, should
# that have lost, the one with the best head 1.
stage_fine_tune() {
    local k
    for k in $block_sizes; do
        local options=(model.freeze_base=false "optimization.lr=[$fine_tuning_rate]"
            checkpoint.best_checkpoint_metric=loss checkpoint.maximize_best_checkpoint_metric=false)
        if [[ "$setting" == grey ]]; then
            options+=("criterion.heads_per_step=$k") # head 1, which decides, is always among them
        fi
        train_heads "fine-tuned-$k" "$k" "$models/regular-$k/model.pt" "${options[@]}"
    done
}

# The table is work/sign_digits_sr/table/table.md; pictures lie beside each measurement.
stage_table() {
    local k
    for k in $block_sizes; do
        measure "regular-$k" "$k"
        measure "fine-tuned-$k" "$k"
    done
    own_table "blocks${results#"$work/table"}" --output "$results/table.md" \
        --figure "$results/speed.png"
    table_beside_papers
}

# Trains heads unless that is done: train_heads NAME HEADS BASE [hydra overrides]. A stop loses 5,000 updates at most.
train_heads() {
    local name="$1" heads="$2" base="$3" batch every=$((heads_updates > 20000 ? 5000 : heads_updates / 4))
    shift 3
    batch="$(paper_batch)"
    # shellcheck disable=SC2086 # no word, or two
    also_shortened=SR_HEADS_UPDATES run_variant "heads$suffix" "$images" "$models/$name" "$heads_updates" "$every" \
        "model.base_checkpoint=$base" "model.block_heads=$heads" "$@" $batch
}

# Decodes with a block size unless that is done: measure MODEL HEADS.
measure() {
    if is_done "$results/$1/record.json" SR_LIMIT "$models/$1/model.pt"; then
        return
    fi
    echo "== table: $1" >&2
    python -m fairseq_aggdec.cli.verbs super-resolve "$images" --path "$models/$1/model.pt" --block-size "$2" \
        --accept-distance "$distance" --limit "$limit" --output "$results/$1" ${SR_OPTIONS:---threads 2 --repeats 2}
}
