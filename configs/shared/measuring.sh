# Stages that time one model in several modes: `bench` and, for the tables and figures on efficiency, those of
# `measuring_stages`; `trace` shows the iterations of sentences. The experiment sets `model` and, if it has one, `drafter`. It
# may set `modes`, options of aggdec bench in `bench_options`, of all decodings in `decoding_options`, and of this plugin's
# modes in `plugin_options`. BENCH_LIMIT=200 in the environment times only the first 200 sentences; PRECISIONS="fp32 fp16", which
# full_size.sh sets on a GPU, times what names no precision and no processor in both, the second as NAME-fp16. COPIES:
# see scripts/decode.sh.
# shellcheck shell=bash disable=SC2154,SC2034
measuring_stages=(batch cpu memory profile trace)
drafter="" modes="" figures="$work/figures" bench_options=() decoding_options=() plugin_options=()
source "$shared/table.sh"
source "$shared/trace.sh"

# Times decoding unless that is done: measure NAME [options of aggdec bench]; writes work/EXPERIMENT/bench/NAME.json, and its
# figures into `figures`, or none where that is empty.
measure() {
    local name="$1" precision
    shift
    if [[ " $* " == *" --fp16 "* || " $* " == *" --device cpu "* ]]; then
        measure_once "$name" "$@"
        return
    fi
    for precision in ${PRECISIONS:-fp32}; do
        if [[ "$precision" == fp32 ]]; then measure_once "$name" "$@"; else measure_once "$name-fp16" "$@" --fp16; fi
    done
}

measure_once() {
    local output="$work/bench/$1.json" options=(--path "$model" --modes "${modes:-$(usual_modes)}")
    shift
    if [[ -n "$drafter" ]]; then
        options+=(--drafter-path "$drafter")
    fi
    options+=(${COPIES:+--copies "$COPIES"} ${bench_options[@]+"${bench_options[@]}"} ${decoding_options[@]+"${decoding_options[@]}"}
        ${plugin_options[@]+"${plugin_options[@]}"})
    if [[ " $* " != *" --device "* ]] && has_gpu; then
        options+=(--device cuda)
    fi
    if ! is_done "$output" BENCH_LIMIT "${options[@]}" "$@"; then
        mkdir -p "$work/bench"
        echo "== aggdec bench $experiment ${options[*]} $*" >&2
        python -m fairseq_aggdec.cli.verbs bench "$work/data-bin" "${options[@]}" "$@" ${BENCH_LIMIT:+--limit "$BENCH_LIMIT"} \
            --json "$output" >/dev/null # its tables are printed below
    fi
    python -m fairseq_aggdec.cli.verbs report "$output" ${figures:+--figures "$figures"}
}

usual_modes() {
    if [[ -n "$drafter" ]]; then pair_modes "3 1" "5 3"; else echo "beam5,beam1,greedy,iad"; fi
}

# The names in aggdec bench of the decodings of decode_pair: pair_modes "BETA TAU" "BETA TAU".
pair_modes() { echo "beam5,beam1,greedy,nar,gad,gad++:${1/ /:},gad++:${2/ /:}"; }

stage_bench() { measure bench; }

# papers/000 Figures 6 and 7: in fp16 on a GPU, as there
stage_batch() {
    local half=()
    if has_gpu; then half=(--fp16); fi
    measure batch --batch-sizes 1,2,4,8,16,32 --no-profile --no-memory ${half[@]+"${half[@]}"}
}

# papers/000 Table 12, papers/002 Table 8
stage_cpu() { measure_on_cpu cpu; }

# measure_on_cpu NAME [options of aggdec bench]
measure_on_cpu() {
    local name="$1" threads
    shift
    for threads in 8 2; do
        measure "$name-$threads" --device cpu --threads "$threads" --no-profile --no-memory "$@"
    done
}

# papers/000 Table 16
stage_memory() { measure memory --repeats 1 --no-profile --memory; }

# papers/000 Table 15
stage_profile() { measure profile --repeats 1 --profile --no-memory; }
