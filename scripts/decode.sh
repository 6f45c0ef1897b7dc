#!/usr/bin/env bash
# Decodes a test set: scripts/decode.sh EXPERIMENT [--decoding beam5|beam1|beamN|greedy|iad|...] [--subset test]
#                     [--batch-size 1] [--model FILE] [--label NAME] [further fairseq-generate options]
# Writes work/EXPERIMENT/decode/SUBSET/LABEL/generate-SUBSET.txt, LABEL being the decoding unless named, the command and,
# where the plugin decodes, its counters (stats.jsonl); does nothing if that is complete.
# The output of a lossless mode is compared with that of beam1, if that has been decoded: a difference ends the stage.
# `beamN` is stock fairseq, and so is `nat:PASSES:LENGTH-BEAM`, for its non-autoregressive models (configs/README.md); anything
# else is a decoding of the task aggressive_translation. --half decodes in half precision, as LABEL-fp16. DECODE_LIMIT=100 in
# the environment decodes only the first 100 sentences; with COPIES=paper in it, `iad` copies as the papers do. With
# --block-ngrams, which stock fairseq does not know, `beamN` is --decoding aggressive-beam, which bans what fairseq bans with its
# CUDA extension.
source "$(dirname -- "${BASH_SOURCE[0]}")/stage.sh"

decoding=beam5 subset=test batch_size=1 model="$work/model.pt" label="" half=""
rest=()
while (($#)); do
    case "$1" in
        --decoding) decoding="$2"; shift 2 ;;
        --subset) subset="$2"; shift 2 ;;
        --batch-size) batch_size="$2"; shift 2 ;;
        --model) model="$2"; shift 2 ;;
        --label) label="$2"; shift 2 ;;
        --half) half=-fp16; rest+=(--fp16); shift ;;
        *) rest+=("$1"); shift ;;
    esac
done

absolute model
label="${label:-$decoding}$half"
if [[ "$decoding" == iad && -n "${COPIES:-}" ]]; then rest+=(--copies "$COPIES"); fi
output="$work/decode/$subset/$label"

# There is no comparison with options for which the mode does not promise the same output.
check_against_beam1() {
    local reference="$work/decode/$subset/${label%"$decoding"}beam1/generate-$subset.txt"
    local lossless
    [[ $decoding != beam* && $decoding != nat:* ]] || return 0
    case " ${rest[*]-} " in
        *" --int8 "* | *" --bf16 "* | *" --fp16 "*) return 0 ;;
        *" --block-ngrams "*) grep -qs -e --block-ngrams "${reference%/*}/command.txt" || return 0 ;;&
        *" --top-beta "* | *" --tolerance "* | *" --accept-distance "* | *" --min-block "*) return 0 ;;
    esac
    lossless="$(python -c 'from fairseq_aggdec.generation.modes import MODES
print("", *(name for name, mode in MODES.items() if mode.is_lossless and not mode.has_beam), "")')"
    [[ $lossless == *" $decoding "* ]] || return 0
    ! grep -q '^Generate ' "$reference" 2>/dev/null || python -m fairseq_aggdec.cli.verbs compare -- "$reference" "$output/generate-$subset.txt" >&2
}

alone_in "$output"
generated="$output/generate-$subset.txt"
grep -qs '^Generate ' "$generated" || rm -f -- "$generated" # what was stopped is decoded anew
if is_done "$generated" DECODE_LIMIT "$model" ${rest[@]+"${rest[@]}"}; then
    echo "$generated is complete" >&2
    check_against_beam1
    exit 0
fi

case "$decoding" in
    beam[0-9]*)
        mode=(--task translation --beam "${decoding#beam}")
        if [[ " ${rest[*]-} " == *" --block-ngrams "* ]]; then
            mode=(--task aggressive_translation --decoding aggressive-beam --beam "${decoding#beam}")
        fi
        ;;
    nat:*:*)
        passes="${decoding#nat:}" # of which fairseq does not count the first; without all of them CMLM leaves masks
        mode=(--task translation_lev --iter-decode-max-iter $((${passes%:*} - 1)) --iter-decode-with-beam "${passes#*:}"
            --iter-decode-force-max-iter)
        ;;
    *) mode=(--task aggressive_translation --decoding "$decoding" --beam 1 --decoding-stats "$output/stats.jsonl") ;;
esac
device=()
has_gpu || device=(--cpu)
binary="$work/data-bin"
if [[ -n "${DECODE_LIMIT:-}" ]]; then
    binary="$work/first/$subset-$DECODE_LIMIT"
    [[ -d "$binary" ]] || python -m experiments.first "$work/data-bin" "$subset" "$DECODE_LIMIT" "$binary"
fi
command=(fairseq-generate "$binary" --user-dir "$plugin" --path "$model" --gen-subset "$subset"
    --batch-size "$batch_size" --results-path "$output" "${mode[@]}" "${device[@]}" ${rest[@]+"${rest[@]}"})
(printf '%q ' "${command[@]}" && echo) >"$output/command.txt"
"${command[@]}"
check_against_beam1
