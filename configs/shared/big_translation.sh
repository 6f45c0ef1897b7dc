# Further stages of WMT14: models of Transformer-big's size, and a teacher that is an ensemble of three.
# shellcheck shell=bash disable=SC2154,SC2034
further_stages+=(big mixed ensemble ensemble_big)

# Verifier and drafter of the teacher's size: papers/000 Table 8, papers/001 Table 4.
stage_big() {
    train_pair _big "$distilled" ""
    evaluate_pair big- verifier_big drafter_big "3 1" "5 6"
}

# The base verifier with the big drafter, which the stage `big` makes, and with one of its own size, k = 30: papers/000 Table 9, papers/001 Table 5.
stage_mixed() {
    if ((!dry)) && [[ ! -f "$work/drafter_big/model.pt" ]]; then
        echo "error: mixed needs $work/drafter_big/model.pt: run the stage \`big\`, which makes it, before" >&2
        exit 1
    fi
    run_full 8 4 drafter --as drafter-k30 --data "$distilled" model.block_size=30 \
        "model.encoder_from=$work/verifier/model.pt"
    decode_pair k30- verifier drafter-k30 "3 1" "5 3"
    decode_drafted drafter-big- verifier drafter_big "3 1" "5 3"
}

# Three teachers that differ in their seed, and the pairs that learn from them: papers/001 Table 6.
stage_ensemble() {
    distil_ensemble
    train_pair "" "$work/distilled_ensemble/data-bin" -ensemble
    evaluate_pair ensemble- verifier-ensemble drafter-ensemble "3 1" "5 3"
}

stage_ensemble_big() {
    distil_ensemble
    train_pair _big "$work/distilled_ensemble/data-bin" -ensemble
    evaluate_pair ensemble-big- verifier_big-ensemble drafter_big-ensemble "3 1" "5 6"
}

distil_ensemble() {
    local seed
    run_full 8 4 teacher
    for seed in 2 3; do
        run_full 8 4 teacher --as "teacher-$seed" "common.seed=$seed"
    done
    distil distilled_ensemble teacher teacher-2 teacher-3
    run decode --label ensemble-teacher-beam5 \
        --model "$work/teacher/model.pt:$work/teacher-2/model.pt:$work/teacher-3/model.pt"
}

# Decodes with a pair and times it, as bench/LABELbench: evaluate_pair LABEL VERIFIER DRAFTER "BETA TAU" "BETA TAU".
evaluate_pair() {
    decode_pair "$@"
    model="$work/$2/model.pt" drafter="$work/$3/model.pt" modes="$(pair_modes "$4" "$5")" measure "$1bench"
}

# Verifier and drafter of a size: train_pair SIZE DATA SUFFIX, SIZE being empty or _big.
train_pair() {
    run_full 8 4 "verifier$1" --as "verifier$1$3" --data "$2"
    run_full 8 4 "drafter$1" --as "drafter$1$3" --data "$2" "model.encoder_from=$work/verifier$1$3/model.pt"
}
