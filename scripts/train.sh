#!/usr/bin/env bash
# Trains a model of an experiment: scripts/train.sh EXPERIMENT [--config NAME] [--as MODEL] [--data FOLDER]
#                                  [--place FOLDER] [--of EXPERIMENT] [--updates NUMBER] [hydra overrides]
# NAME is a file of configs/EXPERIMENT without .yaml (default train), or of the experiment --of names; MODEL, the name
# of the model's folder, is NAME unless given; --place names another folder altogether; --updates is the length of the
# training, also for a schedule of the learning rate that ends with it. A value that begins with / is a path, whatever
# its characters. It continues from checkpoint_last.pt if there is one, and does nothing if max_update has been reached.
source "$(dirname -- "${BASH_SOURCE[0]}")/stage.sh"

name=train model="" place="" updates="" train_data="$work/data-bin"
overrides=()
while (($#)); do
    case "$1" in
        --config) name="$2"; shift 2 ;;
        --as) model="$2"; shift 2 ;;
        --place) place="$2"; shift 2 ;;
        --of) config="$root/configs/$2"; shift 2 ;;
        --data) train_data="$2"; shift 2 ;;
        --updates) updates="$2"; shift 2 ;;
        *) overrides+=("$1"); shift ;;
    esac
done

place="${place:-$(model_folder "${model:-$name}")}"
absolute place
absolute train_data
user_dir="$plugin"
if [[ -d "$config/user_dir" ]]; then # the experiment's, which imports the plugin
    user_dir="$config/user_dir"
fi
paths=("common.user_dir=$user_dir" "task.data=$train_data" "checkpoint.save_dir=$place/checkpoints"
    "hydra.run.dir=$place/train")
if grep -q '^bpe:' "$config/$name.yaml"; then
    paths+=("bpe.bpe_codes=$work/data-bin/codes")
fi

keep_freed_memory
alone_in "$place/checkpoints"

# A training on the CPU is in single precision where the processor would only emulate the bfloat16 of its configuration; it
# keeps the precision that it began with, which its optimizer's state depends on.
files_of() { # FILE: it and the files that it is made of
    local part
    echo "$1"
    for part in $(sed -n 's/^defaults: \[\(.*\)\]$/\1/p' "$1" | tr -d ,); do
        [[ "$part" == _self_ ]] || files_of "$shared/${part#/}.yaml"
    done
}
mapfile -t files < <(files_of "$config/$name.yaml")
if [[ -n "$updates" ]]; then
    overrides+=("optimization.max_update=$updates")
    if grep -q '_name: polynomial_decay' "${files[@]}"; then # others have no such option, and hydra refuses it
        overrides+=("lr_scheduler.total_num_update=$updates")
    fi
fi
given=" ${overrides[*]-}"
if [[ "$given" != *" common.bf16="* ]] && grep -q '^  cpu: true' "${files[@]}" && grep -q '^  bf16: true' "${files[@]}"; then
    precision="$place/checkpoints/precision"
    if [[ ! -f "$precision" && ! -f "$place/checkpoints/checkpoint_last.pt" ]]; then
        faster="$(python -c 'import torch; from fairseq_aggdec.compat.training import is_bfloat16_fast
print("bf16" if is_bfloat16_fast(torch.device("cpu")) else "fp32")')"
        echo "$faster" >"$precision"
    fi
    if [[ -f "$precision" && "$(<"$precision")" == fp32 ]]; then
        echo "train: in single precision: this processor multiplies no faster in bfloat16" >&2
        paths+=("common.bf16=false")
    fi
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

fairseq-hydra-train --config-dir "$config" --config-name "$name" "${arguments[@]}"
