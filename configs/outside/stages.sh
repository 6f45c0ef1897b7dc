# The stages of models that others trained, for scripts/reproduce.sh: nothing is trained here.
# shellcheck shell=bash disable=SC2154,SC2034
source "$shared/table.sh"
stages=(prepare verify bench table)

stage_prepare() { prepare; }

# each mode beside fairseq's search, alone and in batches
stage_verify() { of_models verify; }

# one thread: the models are too small for more
stage_bench() { of_models bench --repeats 5 --no-profile --no-memory; }

stage_table() { own_table models --output "$work/table.md"; }

# Runs a verb for each model unless that is done: of_models VERB [options]; writes work/outside/VERB/MODEL.json.
of_models() {
    local verb="$1" model output
    shift
    local -A longest=([transliterator]=59 [stress_marker]=254 [molecule_editor]=99) # outputs of their own decoders
    for model in transliterator stress_marker molecule_editor; do
        output="$work/$verb/$model.json"
        if ! is_done "$output" BENCH_LIMIT; then
            mkdir -p "$work/$verb"
            echo "== $verb: $model" >&2
            python "$config/measure.py" "$verb" "$work/$model" --path "$work/$model/checkpoint.pt" --threads 1 \
                --max-len-b "${longest[$model]}" --json "$output" "$@" ${BENCH_LIMIT:+--limit "$BENCH_LIMIT"} ||
                { rm -f -- "$output" && exit 1; } # where outputs differ it has been written
        fi
    done
}
