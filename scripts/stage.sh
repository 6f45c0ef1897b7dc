# Sourced by the stage scripts (prepare, train, average, decode, score): the experiment named first and its folders.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
experiment="${1:-}"
if [[ -z "$experiment" || ! -d "$root/configs/$experiment" ]]; then
    echo "usage: $0 EXPERIMENT [options]; experiments: $(ls "$root/configs" | tr '\n' ' ')" >&2
    exit 2
fi
shift

if [[ -d "$root/.venv/bin" ]]; then
    PATH="$root/.venv/bin:$PATH"
fi
config="$root/configs/$experiment"
data="${AGGDEC_DATA:-$root/../shared/data}"
work="${AGGDEC_WORK:-$root/work}/$experiment"
plugin="$root/fairseq_aggdec"
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
mkdir -p "$work"

# Where the model of configs/EXPERIMENT/NAME.yaml is trained: the only model of an experiment is called `train`.
model_folder() {
    if [[ "$1" == train ]]; then echo "$work"; else echo "$work/$1"; fi
}

# Keep freed memory: on a CPU, handing every large tensor back to the system and asking for it again costs time.
keep_freed_memory() {
    export MALLOC_MMAP_THRESHOLD_="${MALLOC_MMAP_THRESHOLD_:-4294967296}"
    export MALLOC_TRIM_THRESHOLD_="${MALLOC_TRIM_THRESHOLD_:-8589934592}"
    export MALLOC_TOP_PAD_="${MALLOC_TOP_PAD_:-268435456}"
}
