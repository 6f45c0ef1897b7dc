# Decoding with a verifier and a drafter, by the `decoding_options` and `plugin_options` of measuring.sh.
# shellcheck shell=bash disable=SC2154

# Decodes with a pair of models by all modes: decode_pair LABEL VERIFIER DRAFTER "BETA TAU"...
decode_pair() {
    local mode
    for mode in beam5 beam1; do
        run decode --decoding "$mode" --label "$1$mode" --model "$work/$2/model.pt" \
            ${decoding_options[@]+"${decoding_options[@]}"}
    done
    decode_drafted "$@"
}

# The same by the modes that use the drafter.
decode_drafted() {
    local label="$1" mode
    local options=(--model "$work/$2/model.pt" ${decoding_options[@]+"${decoding_options[@]}"})
    options+=(--drafter-path "$work/$3/model.pt" ${plugin_options[@]+"${plugin_options[@]}"})
    shift 3
    for mode in nar gad; do
        run decode --decoding "$mode" --label "$label$mode" "${options[@]}"
    done
    decode_settings "$label" "$@"
}

# By GAD++ alone, with the `options` of the caller: decode_settings LABEL "BETA TAU"...
decode_settings() {
    local label="$1" setting beta tau
    shift
    for setting in "$@"; do
        read -r beta tau <<<"$setting"
        run decode --decoding gad++ --label "${label}gad++-$beta-$tau" --top-beta "$beta" --tolerance "$tau" "${options[@]}"
    done
}
