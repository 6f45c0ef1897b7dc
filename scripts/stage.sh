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
