# The stages of the small translation experiments, for scripts/reproduce.sh.
# shellcheck shell=bash disable=SC2154,SC2034
source "$shared/measuring.sh"
source "$shared/decode_pair.sh"
stages=(prepare teacher distill verifier redistill drafter decode score bench table)
further_stages=(ablation block_sizes mixed ensemble papers_drafter blockwise blockwise_table "${measuring_stages[@]}")

target="${target:-de}" # configs/tatoeba_de_en: en
if [[ "$target" == de ]]; then # the novels are English
    further_stages=(novels "${further_stages[@]}")
fi

distilled="$work/distilled/data-bin"
redistilled="$work/redistilled/data-bin"
model="$work/verifier/model.pt" drafter="$work/drafter/model.pt"
bench_of_pair=(--threads 2 --profile --reference "$work/text/test.$target")

here="$(dirname "${BASH_SOURCE[0]}")"
source "$here/ablation.sh"
source "$here/blockwise.sh"
source "$here/baselines.sh"
source "$shared/tune.sh"
tune_limit="${TUNE_LIMIT:-300}"
tune_options=(--block-sizes 2,4,6,8,10 --threads 2) # the drafter is trained with blocks of 10

stage_prepare() { prepare; }
stage_teacher() { run_model teacher; }
# the targets of fairseq's own search, in less time on a CPU
fast_search=(--decoding aggressive-beam --batch-size 64 --max-len-a 1.5 --max-len-b 10)
stage_distill() { distill --workers 2 "${fast_search[@]}"; }

stage_verifier() {
    run_model verifier --data "$distilled" "checkpoint.finetune_from_model=$work/teacher/model.pt"
}

# The drafter's targets are the verifier's own greedy output. They are made for the validation set too, so that `accepted`
# measures agreement with the verifier.
stage_redistill() {
    distill --output "$redistilled" --teacher "$work/verifier/model.pt" --beam 1 --subset train,valid \
        --workers 2 "${fast_search[@]}"
}

# Further sources for the drafter, which the verifier translates; to be run before the stage `drafter`.
stage_novels() {
    local novels="$work/novels" file
    python -m fairseq_aggdec.cli.verbs prepare "$here/novels.py" --data "$data" --work "$novels" --workers "$(cores)"
    distill --data "$novels/data-bin" --output "$novels/distilled" --teacher "$model" --beam 1 --subset train \
        --workers 2 "${fast_search[@]}"
    for file in "$novels/distilled"/train.*; do
        [[ ! -f "$file" ]] || cp "$file" "$redistilled/train1.${file##*/train.}"
    done
}

stage_drafter() {
    run_model drafter --data "$redistilled" "model.encoder_from=$work/verifier/model.pt"
}

stage_decode() {
    run decode --decoding beam5 --model "$work/teacher/model.pt" --label teacher-beam5
    run decode --decoding greedy --model "$model"
    decode_pair "" verifier drafter "3 1" "5 3"
}

# Drafters of papers/000 in this one's place: a bidirectional prefix, one block of a sentence in an update, tokens chosen
# independently, glancing, an encoder of its own. PAPERS_DRAFTERS names them by layers and k; the paper's, 6-25, wants a GPU
# (PAPERS_DRAFTERS=2-10 leaves it out). Updates are smaller by as much as there are fewer blocks.
stage_papers_drafter() {
    local sizes="${PAPERS_DRAFTERS:-2-10 6-25}" updates="${PAPERS_UPDATES:-40000}" size device=()
    if has_gpu; then device=(common.cpu=false); fi
    for size in $sizes; do
        also_shortened=PAPERS_UPDATES train_papers_drafter "$size" --updates "$updates" \
            dataset.validate_interval_updates=1000 checkpoint.save_interval_updates=1000 ${device[@]+"${device[@]}"}
        drafter="$work/papers-drafter-$size/model.pt" measure "papers-drafter-$size" "${bench_of_pair[@]}" --no-memory
    done
    stage_bench
    own_table papers_drafter --output "$work/papers-drafter.md"
}

# train_papers_drafter LAYERS-K [hydra overrides]
papers_training=(run_model)
train_papers_drafter() {
    local size="$1"
    shift
    "${papers_training[@]}" drafter --as "papers-drafter-$size" --data "$redistilled" "model.encoder_from=$work/verifier/model.pt" \
        "model.decoder.layers=${size%-*}" "model.block_size=${size#*-}" model.prefix_attention=bidirectional \
        task.blocks_per_sentence=1 model.transition_dim=0 model.freeze_encoder=false criterion.glancing=0.5:0.3 \
        criterion.position_decay=1 "$@"
}

# Three teachers that differ in their seed, and the pair that learns from them: papers/001 Table 6.
stage_ensemble() {
    local seed teachers="$work/teacher/model.pt" folder="$work/ensemble"
    for seed in 2 3; do
        run_model teacher --as "teacher-$seed" "common.seed=$seed"
        teachers+=":$work/teacher-$seed/model.pt"
    done
    distill --teacher "$teachers" --output "$folder/distilled" --workers 2 "${fast_search[@]}"
    run decode --decoding beam5 --label ensemble-teacher-beam5 --model "$teachers"
    run_model verifier --as verifier-ensemble --data "$folder/distilled" \
        "checkpoint.finetune_from_model=$work/teacher/model.pt"
    distill --output "$folder/redistilled" --teacher "$work/verifier-ensemble/model.pt" --beam 1 \
        --subset train,valid --workers 2 "${fast_search[@]}"
    run_model drafter --as drafter-ensemble --data "$folder/redistilled" \
        "model.encoder_from=$work/verifier-ensemble/model.pt"
    decode_pair ensemble- verifier-ensemble drafter-ensemble "3 1" "5 3"
    model="$work/verifier-ensemble/model.pt" drafter="$work/drafter-ensemble/model.pt" measure ensemble-bench \
        "${bench_of_pair[@]}"
}

stage_score() { score; }

stage_bench() { measure bench "${bench_of_pair[@]}"; }
