# The stages of a grammatical error correction experiment of full size: Transformer-big with 6+6 and with 9+3 layers.
# shellcheck shell=bash disable=SC2154,SC2034
source "$shared/full_size.sh"
stages=(prepare scratch shallow decode score bench table)
further_stages=("${measuring_stages[@]}")
model="$work/scratch/model.pt"
export COPIES=paper # of `iad`, as scripts/decode.sh and measuring.sh read it

stage_prepare() { prepare; }

# papers/000 Tables 1 and 4
stage_scratch() { run_full 4 4 scratch; }

# 9+3 layers: papers/002 §4.3
stage_shallow() { run_full 4 4 scratch --as scratch-9-3 "${nine_three[@]}"; }
nine_three=(model.encoder.layers=9 model.decoder.layers=3)

stage_decode() { decode_models test scratch scratch-9-3; }

# Decodes a set with models: decode_models SUBSET MODEL...
decode_models() {
    local subset="$1" name mode
    shift
    for name in "$@"; do
        for mode in beam5 beam1 greedy iad; do
            run decode --subset "$subset" --decoding "$mode" --label "$name-$mode" --model "$work/$name/model.pt"
        done
    done
}

stage_score() { score; }

stage_bench() { measure_models test scratch scratch-9-3; }

# Decodes the test set of BEA-2019, whose corrections are not published, and writes work/EXPERIMENT/outputs/bea19/LABEL.txt, the
# lines that the shared task's site scores: bea19_outputs MODEL...
bea19_outputs() {
    decode_models test1 "$@"
    score --write "$work/outputs"
}

# Times decoding of a set with models, as bench/SUBSET-MODEL: measure_models SUBSET MODEL...
measure_models() {
    local subset="$1" name
    shift
    for name in "$@"; do
        model="$work/$name/model.pt" measure "$subset-$name" --gen-subset "$subset"
    done
}

# Synthetic pairs from the clean English that the user names in CLEAN_ENGLISH, unless that is done: synthesise PREFIX writes
# PREFIX.src and PREFIX.tgt. Errors are made in running text; then both sides are tokenised like the real pairs. Each
# line gives one pair; papers/000 §4.1.1 makes 300 million (and names neither its text nor all of its method).
synthesise() {
    if [[ ! -f "${CLEAN_ENGLISH:-}" ]]; then
        echo "error: CLEAN_ENGLISH=${CLEAN_ENGLISH:-} is no file: set it to clean English running text (not tokenised), one sentence a line" \
            "(for example News Crawl, https://data.statmt.org/news-crawl/en/)" >&2
        exit 1
    fi
    if [[ ! -f "$1.tgt" ]]; then
        mkdir -p "$(dirname "$1")"
        python -m fairseq_aggdec.cli.verbs corrupt "$CLEAN_ENGLISH" "$1" --seed 1 --tokens --workers "$(cores)"
    fi
}
