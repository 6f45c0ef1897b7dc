# The stage `tune`: k, β and τ of GAD++ on the development set (papers/000 Tables 6 and 7, papers/001 Tables 2 and 3; see
# docs/tuning.md) as work/EXPERIMENT/tune.md and .png. The experiment sets `model` and `drafter`; it may set options of
# aggdec tune in `tune_options`. TUNE_LIMIT=300 in the environment takes only the first 300 sentences.
# shellcheck shell=bash disable=SC2154,SC2034
further_stages+=(tune)
tune_options=() tune_limit="${TUNE_LIMIT:-}"

stage_tune() {
    local options=(--path "$model" --drafter-path "$drafter" ${tune_options[@]+"${tune_options[@]}"})
    if [[ -n "$tune_limit" ]]; then
        options+=(--limit "$tune_limit")
    fi
    if [[ " ${options[*]} " != *" --device "* ]] && has_gpu; then
        options+=(--device cuda)
    fi
    python -m fairseq_aggdec.cli.tune "$work/data-bin" "${options[@]}" --output "$work/tune.jsonl" \
        --figure "$work/tune.png" | tee "$work/tune.md"
}
