# Abstractive summarization by GAD (papers/000 Table 10): BART fine-tuned on CNN/Daily Mail writes the training summaries that
# verifier and drafter of BART-base's size learn from.
# shellcheck shell=bash disable=SC2154,SC2034
source "$shared/full_size.sh"
stages=(prepare distill verifier drafter decode score bench table)
further_stages=(undistilled "${measuring_stages[@]}")
distilled="$work/distilled/data-bin"
model="$work/verifier/model.pt" drafter="$work/drafter/model.pt"
average_last=10 # papers/000 Appendix B.1
# how fairseq's BART decodes this test set. Without its CUDA extension fairseq's own search would repeat n-grams and say
# nothing: with --block-ngrams scripts/decode.sh takes this plugin's search, which has the same outputs
search_options=(--lenpen 2.0 --max-len-b 140 --min-len 55 --no-repeat-ngram-size 3)
decoding_options=("${search_options[@]}" --block-ngrams)

stage_prepare() { prepare; }

stage_distill() {
    mkdir -p "$work/teacher"
    ln -sfn "$(realpath "$data")/bart/bart.large.cnn/model.pt" "$work/teacher/model.pt"
    search=(--beam 4 --decoding aggressive-beam "${search_options[@]}")
    distil distilled teacher
}

stage_verifier() { train_verifier --data "$distilled"; }
train_verifier() { run_full 8 4 verifier "$@" "checkpoint.finetune_from_model=$data/bart/bart.base/model.pt"; }

stage_drafter() { run_full 8 4 drafter --data "$distilled" "model.encoder_from=$work/verifier/model.pt"; }

stage_decode() {
    run decode --decoding beam4 --label teacher-beam4 --model "$work/teacher/model.pt" "${decoding_options[@]}"
    decode_pair "" verifier drafter "3 1" "5 3"
}

# BART-base on the summaries of the data set.
stage_undistilled() {
    train_verifier --as undistilled
    run decode --label undistilled-beam5 --model "$work/undistilled/model.pt" "${decoding_options[@]}"
}

stage_score() { score; }
