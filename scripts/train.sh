#!/usr/bin/env bash
# Trains a model of an experiment: scripts/train.sh EXPERIMENT [--config NAME] [--as MODEL] [--data FOLDER]
#                                  [--place FOLDER] [--of EXPERIMENT] [hydra overrides, e.g. optimization.max_update=100]
# NAME is a file of configs/EXPERIMENT without .yaml (default train), or of the experiment --of names; MODEL, the name of the
# model's folder, is NAME unless given; --place names another folder altogether. A value that begins with / is a path,
# whatever its characters. It continues from checkpoint_last.pt if there is one, and does nothing if max_update
# has been reached.
source "$(dirname -- "${BASH_SOURCE[0]}")/stage.sh"

name=train model="" place="" train_data="$work/data-bin"
overrides=()
while (($#)); do
    case "$1" in
        --config) name="$2"; shift 2 ;;
        --as) model="$2"; shift 2 ;;
        --place) place="$2"; shift 2 ;;
        --of) config="$root/configs/$2"; shift 2 ;;
        --data) train_data="$2"; shift 2 ;;
        *) overrides+=("$1"); shift ;;
    esac
done

place="${place:-$(model_folder "${model:-$name}")}"
absolute place
absolute train_data
paths=("common.user_dir=$plugin" "task.data=$train_data" "checkpoint.save_dir=$place/checkpoints"
    "hydra.run.dir=$place/train")
if grep -q '^bpe:' "$config/$name.yaml"; then
    paths+=("bpe.bpe_codes=$work/data-bin/codes")
fi
# A text in quotation marks, as hydra reads it.
quoted() { printf "'%s'" "${1//"'"/"\\'"}"; }

arguments=("hydra.searchpath=[$(quoted "file://$shared")]")
for override in "${paths[@]}" ${overrides[@]+"${overrides[@]}"}; do
    if [[ "$override" == *=/*[!A-Za-z0-9_./-]* ]]; then
        override="${override%%=*}=$(quoted "${override#*=}")"
    fi
    arguments+=("$override")
done

keep_freed_memory
alone_in "$place/checkpoints"
fairseq-hydra-train --config-dir "$config" --config-name "$name" "${arguments[@]}"
