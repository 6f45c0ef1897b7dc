# English grammatical error correction on the BEA-2019 restricted data, CoNLL-2013 as validation and CoNLL-2014 as test set.
# shellcheck shell=bash disable=SC2154,SC2034
source "$shared/gec.sh"
source "$shared/l_max.sh"
further_stages+=(depth synthetic pretrain finetune bea19)
trace_set=valid l_max_subset=valid # CoNLL-13, as in papers/000 Table 2 and papers/002 Table 3

stage_decode() {
    decode_models valid scratch
    decode_models test scratch scratch-9-3
}

stage_bench() {
    measure_models valid scratch
    measure_models test scratch scratch-9-3
}

# CoNLL-13, with both depths: papers/000 Table 12, papers/002 Table 8.
stage_cpu() {
    local name
    for name in scratch scratch-9-3; do
        model="$work/$name/model.pt" measure_on_cpu "cpu-$name" --gen-subset valid
    done
}

# Encoder and decoder depth: papers/002 Table 4.
stage_depth() {
    local depth
    for depth in 3-6 9-6 6-3 6-9 7-5 8-4 10-2 11-1; do
        run_full 4 4 scratch --as "scratch-$depth" "model.encoder.layers=${depth%-*}" "model.decoder.layers=${depth#*-}"
    done
    for depth in "" -3-6 -9-6 -6-3 -6-9 -7-5 -8-4 -9-3 -10-2 -11-1; do
        run decode --subset valid --decoding greedy --label "scratch$depth-greedy" --model "$work/scratch$depth/model.pt"
        model="$work/scratch$depth/model.pt" modes=greedy,iad measure "depth$depth" --gen-subset valid --no-memory
    done
    score
}

# Synthetic pairs in the subwords of the real ones, from clean English of your choice, running text, one sentence a line:
# CLEAN_ENGLISH=FILE bash scripts/reproduce.sh conll14_gec synthetic.
stage_synthetic() {
    local output="$work/synthetic" side
    if [[ -d "$output/data-bin" ]]; then
        return
    fi
    synthesise "$output/pairs"
    for side in src tgt; do
        subword-nmt apply-bpe --codes "$work/codes" --num-workers "$(cores)" --input "$output/pairs.$side" \
            --output "$output/train.$side" # it reads a stream in one process alone
    done
    python -m fairseq_cli.preprocess --source-lang src --target-lang tgt --trainpref "$output/train" \
        --validpref "$work/bpe/valid" --srcdict "$work/data-bin/dict.src.txt" --joined-dictionary --workers "$(cores)" \
        --destdir "$output/data-bin.partial"
    cp "$work/codes" "$output/data-bin.partial/codes"
    mv "$output/data-bin.partial" "$output/data-bin"
}

stage_pretrain() {
    run_full 8 8 pretrain --data "$work/synthetic/data-bin"
    run_full 8 8 pretrain --as pretrain-9-3 --data "$work/synthetic/data-bin" "${nine_three[@]}"
}

# papers/000 Tables 1 and 3, papers/002 Tables 1 and 5
stage_finetune() {
    run_full 4 4 finetune "checkpoint.finetune_from_model=$work/pretrain/model.pt"
    run_full 4 4 finetune --as finetune-9-3 "checkpoint.finetune_from_model=$work/pretrain-9-3/model.pt" "${nine_three[@]}"
    decode_models valid finetune
    decode_models test finetune finetune-9-3
    measure_models valid finetune
    measure_models test finetune finetune-9-3
    score
}

stage_bea19() { bea19_outputs finetune finetune-9-3; } # beside papers/000, footnote 5
