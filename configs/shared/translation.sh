# The stages of a translation experiment of full size (papers/000 §4.2, papers/001 §5). Its stages.sh sets the languages
# `origin` and `target`, and `high_quality` and `high_efficiency`, β and τ of GAD++ (papers/000 Table 14); it may set
# `drafter_frequency`, the update frequency of its drafters on 8 GPUs.
# shellcheck shell=bash disable=SC2154,SC2034
source "$shared/full_size.sh"
stages=(prepare teacher distill verifier drafter decode score bench table)
further_stages=(block_sizes undistilled "${measuring_stages[@]}")
average_last=10 # papers/000 Appendix B.1
drafter_frequency="${drafter_frequency:-4}"
distilled="$work/distilled/data-bin"
model="$work/verifier/model.pt" drafter="$work/drafter/model.pt"
modes="$(pair_modes "$high_quality" "$high_efficiency")"

source "$shared/baselines.sh"
source "$shared/tune.sh" # with one drafter; the stage block_sizes trains one for each k

# Trained from random weights, as in fairseq's recipes, which are for English-German.
train_baseline() {
    run_full 8 1 "$1" --as "baselines/$1" --of wmt14_en_de --data "$distilled" "task.source_lang=$origin" \
        "task.target_lang=$target"
}

stage_prepare() { prepare; }
stage_teacher() { run_full 8 4 teacher; }
stage_distill() { distil distilled teacher; }
stage_verifier() { run_full 8 4 verifier --data "$distilled"; }
stage_drafter() { run_full 8 "$drafter_frequency" drafter --data "$distilled" "model.encoder_from=$work/verifier/model.pt"; }

stage_decode() {
    run decode --label teacher-beam5 --model "$work/teacher/model.pt"
    decode_pair "" verifier drafter "$high_quality" "$high_efficiency"
}

stage_score() { score; }

# The verifier's size on the original pairs: a row of papers/000 Table 5 and papers/001 Table 1.
stage_undistilled() {
    run_full 8 4 verifier --as undistilled
    run decode --label undistilled-beam5 --model "$work/undistilled/model.pt"
}

# Drafters of other block sizes on the development set: papers/000 Table 6.
stage_block_sizes() {
    local k drafter
    for k in 10 15 20 30; do
        run_full 8 "$drafter_frequency" drafter --as "drafter-k$k" --data "$distilled" "model.block_size=$k" \
            "model.encoder_from=$work/verifier/model.pt"
    done
    run decode --subset valid --model "$work/verifier/model.pt"
    for k in 10 15 20 25 30; do
        drafter="$work/drafter-k$k/model.pt"
        if ((k == 25)); then
            drafter="$work/drafter/model.pt"
        fi
        run decode --subset valid --decoding gad++ --label "gad++-3-1-k$k" --top-beta 3 --tolerance 1 \
            --model "$work/verifier/model.pt" --drafter-path "$drafter"
        modes="beam5,gad++:3:1" measure "block-size-$k" --gen-subset valid --no-profile --no-memory
    done
}
