# The stages `baselines_train` and `baselines`: the non-autoregressive models of papers/000 Table 5 that fairseq ships, their
# times and BLEU beside those of our modes (papers/001 Figure 1: work/EXPERIMENT/bench/quality.png), their outputs for the
# scores, and what CMLM says with a length beam of 3 (papers/001 Table 9); see configs/README.md. The experiment defines
# `train_baseline NAME ARCHITECTURE PASSES`, PASSES being those of the decoder in an update.
# shellcheck shell=bash disable=SC2154,SC2034
further_stages+=(baselines_train baselines)

stage_baselines_train() {
    train_baseline nat nonautoregressive_transformer 1
    train_baseline cmlm cmlm_transformer 1
    train_baseline levt levenshtein_transformer 3
    train_baseline inat iterative_nonautoregressive_transformer 4
}

# LABEL=PATH:ITERATIONS:LENGTH-BEAM. Iterations are those of the table; a length beam of 5 is that of CMLM's own paper.
baseline_peers=(
    --nat-peer "nat=$work/baselines/nat/model.pt:1"
    --nat-peer "inat=$work/baselines/inat/model.pt:10"
    --nat-peer "cmlm4=$work/baselines/cmlm/model.pt:4:5"
    --nat-peer "cmlm10=$work/baselines/cmlm/model.pt:10:5"
    --nat-peer "levt=$work/baselines/levt/model.pt:10"
)

# Decodes for the scores: decode_baseline LABEL NAME PASSES:LENGTH-BEAM.
decode_baseline() { run decode --decoding "nat:$3" --label "$1" --model "$work/baselines/$2/model.pt"; }

stage_baselines() {
    local passes
    stage_baselines_train
    decode_baseline nat nat 1:1
    decode_baseline inat inat 10:1
    decode_baseline cmlm10 cmlm 10:5
    decode_baseline levt levt 10:1
    for passes in 4 10; do
        decode_baseline "cmlm$passes-length3" cmlm "$passes:3"
    done
    modes="${modes:-beam5,greedy,nar,gad,gad++:3:1}" measure baselines --reference "$work/text/test.$target" --no-profile \
        --no-memory "${baseline_peers[@]}"
    own_table quality --output "$work/bench/quality.md" --figure "$work/bench/quality.png"
}
