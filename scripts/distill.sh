#!/usr/bin/env bash
# Writes a teacher's outputs as training targets: scripts/distill.sh EXPERIMENT [--teacher FILE[:FILE...]] [--data FOLDER]
#                     [--output FOLDER] [--shards N]
#                     [further aggdec distill options, e.g. --beam 5 --max-len-a 1.5 --subset train,valid]
# Reads --data (default work/EXPERIMENT/data-bin), writes --output (default work/EXPERIMENT/distilled/data-bin). N processes
# on this machine share the work and its GPUs or cores. A stopped call continues; a finished one does nothing.
source "$(dirname -- "${BASH_SOURCE[0]}")/stage.sh"

teacher="$(model_folder teacher)/model.pt" input="$work/data-bin" output="$work/distilled/data-bin" shards=1
rest=()
while (($#)); do
    case "$1" in
        --teacher) teacher="$2"; shift 2 ;;
        --data) input="$2"; shift 2 ;;
        --output) output="$2"; shift 2 ;;
        --shards) shards="$2"; shift 2 ;;
        *) rest+=("$1"); shift ;;
    esac
done
absolute teacher
absolute input
absolute output

keep_freed_memory

distill=(python -m fairseq_aggdec.cli.distill "$input" "$output" --teacher "$teacher" ${rest[@]+"${rest[@]}"})
if ((shards == 1)); then
    "${distill[@]}"
    exit
fi
threads=$(($(nproc) / shards))
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-$((threads > 1 ? threads : 1))}"
gpus=$( (nvidia-smi --list-gpus 2>/dev/null || true) | wc -l)
running=()
trap 'kill "${running[@]}" 2>/dev/null' EXIT
for ((shard = 0; shard < shards; shard++)); do
    if ((gpus > 1)) && [[ -z "${CUDA_VISIBLE_DEVICES:-}" ]]; then
        CUDA_VISIBLE_DEVICES=$((shard % gpus)) "${distill[@]}" --num-shards "$shards" --shard-id "$shard" &
    else
        "${distill[@]}" --num-shards "$shards" --shard-id "$shard" &
    fi
    running+=("$!")
done
for process in "${running[@]}"; do
    wait "$process"
done
trap - EXIT
"${distill[@]}" --num-shards "$shards" --gather
