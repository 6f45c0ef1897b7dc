# Sourced by reproduce.sh --dry-run: every program that a stage starts is replaced by a function that prints its command line
# and leaves the files that later stages look for, in a folder that is deleted at the end.
# shellcheck shell=bash
AGGDEC_WORK="$(mktemp -d)"
export AGGDEC_WORK
if ((${small:-0})) || grep -q '^gpu_hours: 0' "$root/configs/${1:-}/about.yaml" 2>/dev/null; then
    export GPUS="${GPUS:-0}"
else # what a machine with the papers' GPUs runs
    export GPUS="${GPUS:-8}"
fi
if [[ -z "${CLEAN_ENGLISH:-}" ]]; then # the text that a user has to name
    export CLEAN_ENGLISH="$AGGDEC_WORK/clean.en"
    : >"$CLEAN_ENGLISH"
fi
exec 9>&1 # some stages send what a program prints elsewhere
trap 'rm -rf -- "$AGGDEC_WORK"' EXIT

printed() {
    local previous="" word
    case "$1 ${2-} ${3-}" in
        "python -m experiments.about") command "$@"; return ;;
        "python -c "*generation.modes*) command "$@"; return ;;
        "python -c "*) [[ "$3" == *is_bfloat16_fast* ]] && echo "${PRECISION:-bf16}"; return ;;
    esac
    local line
    printf -v line '%q ' "$@"
    printf '%s\n' "${line//"$AGGDEC_WORK"/work}" >&9
    for word in "$@"; do
        case "$previous" in
            --output | --json | --figure) [[ "$word" != "$AGGDEC_WORK"/*.* ]] || { mkdir -p "${word%/*}" && : >"$word"; } ;;
            --work | --destdir) mkdir -p "$word" && : >"$word/codes" ;;
            corrupt) : >"$6.src" && : >"$6.tgt" ;;
            --results-path) mkdir -p "$word" && printf 'H-0\t-1\ta\nGenerate test\n' | tee "$word"/generate-{test,valid}.txt >/dev/null ;;
        esac
        if [[ "$word" == checkpoint.save_dir=* ]]; then
            mkdir -p "${word#*=}"
            : >"${word#*=}/checkpoint_best.pt"
            : >"${word#*=}/checkpoint_last.pt"
        fi
        previous="$word"
    done
}
python() { printed python "$@"; }
fairseq-hydra-train() { printed fairseq-hydra-train "$@"; }
fairseq-generate() { printed fairseq-generate "$@"; }
fairseq-interactive() { printed fairseq-interactive "$@"; }
realpath() { command realpath -m "$@"; } # of data sets that are not there
head() { command head "$@" 2>/dev/null || true; } # of text that is not there
subword-nmt() { printed subword-nmt "$@"; }
export -f printed realpath head python fairseq-hydra-train fairseq-generate fairseq-interactive subword-nmt
