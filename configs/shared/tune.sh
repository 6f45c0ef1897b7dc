# Two stages for GAD++ on the development set, with `model` and `drafter`. `tune` looks for k, β and τ (papers/000 Tables 6 and
# 7, papers/001 Tables 2 and 3; see docs/metrics.md) and writes work/EXPERIMENT/tune.md; the experiment may set options
# of aggdec tune in `tune_options`, and TUNE_LIMIT=300 in the environment lets it take only the first 300 sentences.
# `tolerances` decodes the whole set with each β and τ of papers/000 Table 7 and papers/001 Table 3, for the stage `table`.
# shellcheck shell=bash disable=SC2154,SC2034
further_stages+=(tune tolerances)
tune_options=() tune_limit="${TUNE_LIMIT:-}"

stage_tune() {
    local options=(--path "$model" --drafter-path "$drafter" ${tune_options[@]+"${tune_options[@]}"})
    if [[ -n "$tune_limit" ]]; then
        options+=(--limit "$tune_limit")
    fi
    if [[ " ${options[*]} " != *" --device "* ]] && has_gpu; then
        options+=(--device cuda)
    fi
    is_done "$work/tune.jsonl" TUNE_LIMIT "${options[@]}" || true # `aggdec tune` itself continues it
    python -m fairseq_aggdec.cli.verbs tune "$work/data-bin" "${options[@]}" --output "$work/tune.jsonl" |
        tee "$work/tune.md"
}

stage_tolerances() {
    local options=(--subset valid --model "$model" --drafter-path "$drafter"
        ${decoding_options[@]+"${decoding_options[@]}"} ${plugin_options[@]+"${plugin_options[@]}"})
    decode_settings "" "3 "{1..5} "5 "{1..5}
}
