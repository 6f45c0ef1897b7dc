# The small corrector's training in the size of base, from random weights, for one GPU; see configs/help_en_de_base. JFLEG's test
# set is `test2`.
# shellcheck shell=bash disable=SC2034,SC2154
source "$shared/single_model.sh"
source "$shared/base_size.sh"
base_size gec_small
further_stages=()
average_last=3
decoding_limits=()
if [[ -n "${REHEARSE:-}" ]]; then decoding_limits=(--max-len-b 12); fi

stage_train() {
    train_for 1400 train "${sizes[@]}" model.dropout=0.1 dataset.validate_interval_updates=100
}

stage_decode() { decode_aside test2 beam5 beam1 greedy iad; }

# papers/000 Table 1, rounds in turns
stage_bench() {
    BENCH_LIMIT="${BENCH_LIMIT:-64}" measure bench --gen-subset test2 --batch-sizes 1,8,32 --repeats 2 --no-profile --no-memory \
        ${decoding_limits[@]+"${decoding_limits[@]}"} ${half[@]+"${half[@]}"}
}
