# Sourced by reproduce.sh, train.sh and decode.sh: the experiment named first, and its folders.
# shellcheck shell=bash disable=SC2034
source "$(dirname -- "${BASH_SOURCE[0]}")/environment.sh"

experiment="${1:-}"
if [[ -z "$experiment" || "$experiment" == shared || ! -d "$root/configs/$experiment" ]]; then
    echo "usage: $0 EXPERIMENT [options]; experiments: $(cd "$root/configs" && echo *)" | sed 's/ shared / /' >&2
    exit 2
fi
shift

config="$root/configs/$experiment"
# The variable of this name holds a path: make it absolute. Commands take one that begins with a dash for an option.
absolute() { [[ "${!1}" == /* ]] || printf -v "$1" %s "$PWD/${!1}"; }

data="${AGGDEC_DATA:-$root/../shared/data}"
work="${AGGDEC_WORK:-$root/work}/$experiment"
absolute data
absolute work
plugin="$root/fairseq_aggdec"
mkdir -p "$work"

# What the user has set of the variables that shorten a run; scripts have values of their own for some of them.
declare -A shortened=()
for variable in UPDATES TRAIN_HOURS REHEARSE ABLATION_UPDATES BASELINE_UPDATES BLOCKWISE_UPDATES FINE_TUNING_UPDATES \
    PAPERS_UPDATES SR_BASE_UPDATES SR_HEADS_UPDATES DECODE_LIMIT BENCH_LIMIT BLOCKWISE_LIMIT TUNE_LIMIT SR_LIMIT; do
    if [[ -n "${!variable:-}" ]]; then
        shortened[$variable]="${!variable}"
    fi
done

# Whether RESULT, a file or a folder, is there, for `VARIABLE`s that may shorten it: is_done RESULT "VARIABLE..." [WORD...].
# What is set of them, and what the files named in WORDs were made with (the words of the command that makes RESULT), is
# written to RESULT.shortened, which a whole result does not have. Where RESULT, or a training of it that was stopped, was made
# with something else, the script ends: a shortened result never passes for the whole one.
is_done() {
    local result="$1" begun="$1" now made="" checkpoints=""
    now="$(settings_of "${@:2}")"
    if [[ "$result" == */model.pt ]]; then
        checkpoints="${result%/*}/checkpoints"
        [[ -e "$result" ]] || begun="$checkpoints/checkpoint_last.pt"
    fi
    if [[ -f "$result.shortened" ]]; then
        made="$(<"$result.shortened")"
    fi
    if [[ ! -e "$begun" ]]; then
        rm -f -- "$result.shortened"
        if [[ -n "$now" ]]; then
            mkdir -p -- "${result%/*}"
            echo "$now" >"$result.shortened"
        fi
    elif [[ -z "$made" && -n "$now" ]]; then
        echo "error: $begun is whole: unset $now, or name another folder in AGGDEC_WORK" >&2
        exit 1
    elif [[ "$made" != "$now" ]]; then
        echo "error: $begun was shortened by $made${now:+, and would now be by $now}: set $made again, or" \
            "delete it${checkpoints:+, $checkpoints} and what was made from it" >&2
        exit 1
    fi
    [[ -e "$result" ]]
}

# The settings that `is_done` writes: settings_of "VARIABLE..." [WORD...]
settings_of() {
    local variable word path
    {
        for variable in $1; do
            if [[ -n "${shortened[$variable]:-}" ]]; then
                echo "$variable=${shortened[$variable]}"
            fi
        done
        for word in "${@:2}"; do
            [[ "$word" == /* ]] || word="${word#*=}" # the value of an option of hydra
            word+=:
            while [[ -n "$word" ]]; do # models of an ensemble are joined by colons
                path="${word%%:*}" word="${word#*:}"
                if [[ "$path" == /* && -f "$path.shortened" ]]; then
                    tr ' ' '\n' <"$path.shortened"
                fi
            done
        done
    } | sort -u | paste -s -d ' '
}

# Number of processor cores; `nproc` alone says 1 under OMP_NUM_THREADS=1, as torchrun and clusters set it.
cores() { env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc; }

# Whether there is a GPU that PyTorch can use: GPUS says how many if it is set; without a driver (of NVIDIA or AMD) there is
# no need to load PyTorch.
has_gpu() {
    [[ -z "${GPUS:-}" ]] || return $((GPUS == 0))
    [[ -e /proc/driver/nvidia/version || -e /dev/kfd ]] || command -v nvidia-smi >/dev/null || return 1
    python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'
}

# The folder where the model NAME of an experiment is trained; a single model is called `train`.
model_folder() {
    if [[ "$1" == train ]]; then echo "$work"; else echo "$work/$1"; fi
}

# Keep a second process out of a folder until this script and its children have ended (where flock is installed).
alone_in() {
    mkdir -p "$1"
    if command -v flock >/dev/null; then
        exec {lock}<"$1"
        flock --nonblock "$lock" || {
            printf '%s: another process is at work on it; wait until it has ended\n' "$1" >&2
            exit 1
        }
    fi
}

# Keep freed memory: on a CPU, returning each large tensor to the system and allocating it again costs time.
keep_freed_memory() {
    export MALLOC_MMAP_THRESHOLD_="${MALLOC_MMAP_THRESHOLD_:-4294967296}"
    export MALLOC_TRIM_THRESHOLD_="${MALLOC_TRIM_THRESHOLD_:-8589934592}"
    export MALLOC_TOP_PAD_="${MALLOC_TOP_PAD_:-268435456}"
}
