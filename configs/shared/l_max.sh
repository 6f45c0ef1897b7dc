# The stage `l_max`: the longest draft that IAD may verify at once (papers/002 Table 3). The experiment sets `model`, and
# `l_max_subset`, the set that is decoded.
# shellcheck shell=bash disable=SC2154,SC2034
further_stages+=(l_max)
l_max_lengths="${L_MAX_LENGTHS:-2 3 5 10 20 40}" # fewer values take less time
l_max_subset=test

# L_max tokens in parallel are a draft of L_max - 1 tokens and the model's own token.
stage_l_max() {
    local longest
    decode_l_max 1 --decoding greedy
    for longest in $l_max_lengths; do
        decode_l_max "$longest" --decoding iad --max-draft-len $((longest - 1))
    done
    decode_l_max unlimited --decoding iad
}

decode_l_max() {
    local label="l-max-$1"
    shift
    COPIES=paper run decode --subset "$l_max_subset" --label "$label" --model "$model" "$@"
}
