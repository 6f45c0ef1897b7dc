#!/usr/bin/env bash
# Writes a teacher's outputs as training targets: scripts/distill.sh EXPERIMENT [--teacher FILE[:FILE...]] [--data FOLDER]
#                     [--output FOLDER] [further aggdec distill options, e.g. --workers 2 --beam 5 --subset train,valid]
# Reads --data (default work/EXPERIMENT/data-bin), writes --output (default work/EXPERIMENT/distilled/data-bin). A stopped
# call continues; a finished one does nothing.
source "$(dirname -- "${BASH_SOURCE[0]}")/stage.sh"

teacher="$(model_folder teacher)/model.pt" input="$work/data-bin" output="$work/distilled/data-bin"
rest=()
while (($#)); do
    case "$1" in
        --teacher) teacher="$2"; shift 2 ;;
        --data) input="$2"; shift 2 ;;
        --output) output="$2"; shift 2 ;;
        *) rest+=("$1"); shift ;;
    esac
done
absolute teacher
absolute input
absolute output

keep_freed_memory

python -m fairseq_aggdec.cli.verbs distill "$input" "$output" --teacher "$teacher" ${rest[@]+"${rest[@]}"}
