# English grammatical error correction with 12+2 layers out of BART-large (papers/000 Table 3, papers/002 Table 5), in the
# stages of Stahlberg and Kumar (2020): synthetic pairs, real pairs, and the real pairs that are most like the test set.
# shellcheck shell=bash disable=SC2154,SC2034
source "$shared/gec.sh" # for decode_models and synthesise
stages=(prepare shrink synthetic pretrain finetune last decode score bench table)
further_stages=(bea19 "${measuring_stages[@]}")
model="$work/last/model.pt"
shallow="$work/bart_12_2.pt"

# BART-large with its first and its last decoder layer.
stage_shrink() {
    if [[ ! -f "$shallow" ]]; then
        python -m fairseq_aggdec.cli.verbs shrink "$data/bart/bart.large/model.pt" "$shallow" --decoder-layers-to-keep 0,11
    fi
}

# Synthetic pairs from clean English of your choice, running text, one sentence a line: CLEAN_ENGLISH=FILE.
stage_synthetic() {
    if [[ -d "$work/synthetic/data-bin" ]]; then
        return
    fi
    synthesise "$work/synthetic/pairs"
    python -m fairseq_aggdec.cli.verbs prepare "$config/synthetic.py" --data "$data" --work "$work/synthetic" \
        --workers "$(cores)"
}

stage_pretrain() {
    run_full 8 8 pretrain --data "$work/synthetic/data-bin" "checkpoint.finetune_from_model=$shallow"
}

stage_finetune() { run_full 4 4 finetune "checkpoint.finetune_from_model=$work/pretrain/model.pt"; }

# 60 epochs of this small set are only about 550 updates: a warm-up of 4,000 would be too long.
stage_last() {
    run_full 4 4 finetune --as last dataset.train_subset=wi "checkpoint.finetune_from_model=$work/finetune/model.pt" \
        lr_scheduler.warmup_updates=50
}

stage_decode() {
    decode_models valid last
    decode_models test last
}

stage_bea19() { bea19_outputs last; } # papers/000, footnote 5

stage_bench() { measure_models test last; }

# The papers' speed-ups are over Transformer-big with synthetic data, which is a model of conll14_gec.
stage_table() {
    local big="${work%/*}/conll14_gec/bench/test-finetune.json"
    if [[ ! -f "$big" ]]; then
        echo "without $big, which \`reproduce.sh conll14_gec finetune\` makes, there are no speed-ups over Transformer-big" >&2
    fi
    table_beside_papers
}
