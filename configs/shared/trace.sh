# The stage `trace`: the iterations in which the first sentences of a set are decoded (papers/000 Tables 2 and 17), as
# work/EXPERIMENT/traces/DECODING.jsonl and .txt; their edit ratios and speed-ups over `greedy`, of the same files, as
# traces/examples.md. The experiment may set `trace_set`, the set's name in prepare.py, and
# `trace_decodings`; the rest is that of measuring.sh. A drafter drafts as many tokens as it was trained for: 25 where papers/000
# Table 17 has 10.
# shellcheck shell=bash disable=SC2154,SC2034
trace_set=test trace_decodings=""
trace_sentences="${TRACE_SENTENCES:-10}"

stage_trace() {
    local decoding source drafted
    local options=(--path "$model" --beam 1 --batch-size 1 --retain-iter-history
        ${decoding_options[@]+"${decoding_options[@]}"} ${plugin_options[@]+"${plugin_options[@]}"})
    source="$(sed -n 's/.*sides=("\([a-z]*\)",.*/\1/p' "$config/prepare.py")"
    has_gpu || options+=(--cpu)
    mkdir -p "$work/traces"
    for decoding in greedy ${trace_decodings:-$(if [[ -n "$drafter" ]]; then echo gad gad++; else echo iad; fi)}; do
        drafted=()
        if [[ "$decoding" == gad* && -n "$drafter" ]]; then # other modes refuse a drafter
            drafted=(--drafter-path "$drafter")
        elif [[ "$decoding" == iad ]]; then
            drafted=(--copies paper)
        fi
        head -n "$trace_sentences" "$work/bpe/$trace_set.$source" | fairseq-interactive "$work/data-bin" \
            --user-dir "$plugin" --task aggressive_translation --decoding "$decoding" "${options[@]}" \
            ${drafted[@]+"${drafted[@]}"} --decoding-stats "$work/traces/$decoding.jsonl" >/dev/null
        python -m fairseq_aggdec.cli.verbs report trace "$work/traces/$decoding.jsonl" >"$work/traces/$decoding.txt"
    done
    own_table examples --output "$work/traces/examples.md"
}
