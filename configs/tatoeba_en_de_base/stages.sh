# The small experiment by models of base size, for one GPU: the stages and settings of configs/tatoeba_en_de but for these.
# UPDATES and BENCH_LIMIT shorten it.
# shellcheck shell=bash disable=SC2034,SC2154
source "$shared/base_size.sh"
base_size tatoeba_en_de # the drafter takes the verifier's sizes
source "$root/configs/tatoeba_en_de/stages.sh"
further_stages=()
bench_options=(${half[@]+"${half[@]}"} --batch-sizes 1,8,32)
limits=(--max-len-a 1.5 --max-len-b 10)

stage_teacher() { UPDATES="${UPDATES:-3000}" run_model teacher "${sizes[@]}" 'optimization.lr=[0.001]'; }

stage_distill() { distill "${limits[@]}" ${half[@]+"${half[@]}"}; }

stage_verifier() {
    UPDATES="${UPDATES:-1000}" run_model verifier --data "$distilled" "${sizes[@]}" 'optimization.lr=[0.0003]' \
        "checkpoint.finetune_from_model=$work/teacher/model.pt"
}

stage_redistill() {
    distill --output "$redistilled" --teacher "$work/verifier/model.pt" --beam 1 --subset train,valid "${limits[@]}" \
        ${half[@]+"${half[@]}"}
}

stage_drafter() {
    UPDATES="${UPDATES:-4000}" run_model drafter --data "$redistilled" "model.encoder_from=$work/verifier/model.pt" \
        'optimization.lr=[0.001]'
}

stage_decode() {
    local decoding_options=(--batch-size 32 ${half[@]+"${half[@]}"})
    run decode --decoding beam5 --model "$work/teacher/model.pt" --label teacher-beam5 "${decoding_options[@]}"
    run decode --decoding greedy --model "$model" "${decoding_options[@]}"
    decode_pair "" verifier drafter "3 1" "5 3"
}

stage_bench() { measure bench --no-profile --reference "$work/text/test.$target"; }
