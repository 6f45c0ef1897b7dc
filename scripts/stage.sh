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
