# The stages of the small summarization experiment: all decoding modes with a model of BART's shape (papers/000 Table 10 in small), for
# scripts/reproduce.sh.
# shellcheck shell=bash disable=SC2154,SC2034
source "$shared/measuring.sh"
source "$shared/decode_pair.sh"
stages=(prepare pretrain verifier distill drafter decode score bench table)
further_stages=("${measuring_stages[@]}")
distilled="$work/distilled/data-bin"
export COPIES=paper # of `iad`
model="$work/verifier/model.pt" drafter="$work/drafter/model.pt"

# How a summary is searched for, in the place of the recipe's --lenpen 2.0 --max-len-b 140 --min-len 55
# --no-repeat-ngram-size 3 for the longer summaries of CNN/DailyMail. The stock search is not told to block: on a CPU its
# n-gram blocker does nothing, and it does not know --block-ngrams.
decoding_options=(--lenpen 1.0 --max-len-b 80 --min-len 5 --truncate-source --max-source-positions 512)
plugin_options=(--no-repeat-ngram-size 3 --block-ngrams)

stage_prepare() { prepare; }
stage_pretrain() { run_model pretrain; }
stage_verifier() { run_model verifier "checkpoint.finetune_from_model=$work/pretrain/model.pt"; }

# The drafter's targets are the verifier's own greedy output, on the validation set too, and in train1, which fairseq always
# adds to the training set; splits that are not distilled are copied unchanged.
stage_distill() {
    distill --teacher "$model" --beam 1 --subset train,train1,valid --workers 2 --decoding aggressive-beam \
        --batch-size 32 --max-len-b 80 --max-len-a 0
}

stage_drafter() { run_model drafter --data "$distilled" "model.encoder_from=$model"; }

stage_decode() {
    local mode
    run decode --decoding greedy --label greedy-unblocked --model "$model" "${decoding_options[@]}"
    for mode in greedy iad; do
        run decode --decoding "$mode" --model "$model" "${decoding_options[@]}" "${plugin_options[@]}"
    done
    decode_pair "" verifier drafter "3 1" "5 3"
}

stage_score() { score; }

stage_bench() {
    modes=beam5,beam1,greedy,iad,nar,gad,gad++:3:1,gad++:5:3 measure bench --threads 2 --limit 200
}
