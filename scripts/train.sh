#!/usr/bin/env bash
# Trains an experiment's model: scripts/train.sh EXPERIMENT [hydra overrides, e.g. optimization.max_update=100]
# Goes on from checkpoint_last.pt if there is one; does nothing when max_update has been reached.
source "$(dirname "$0")/stage.sh"

# Keep freed memory: on a CPU, handing every large tensor back to the system and asking for it again costs time.
export MALLOC_MMAP_THRESHOLD_="${MALLOC_MMAP_THRESHOLD_:-4294967296}"
export MALLOC_TRIM_THRESHOLD_="${MALLOC_TRIM_THRESHOLD_:-8589934592}"
export MALLOC_TOP_PAD_="${MALLOC_TOP_PAD_:-268435456}"

overrides=("common.user_dir=$plugin" "task.data=$work/data-bin" "checkpoint.save_dir=$work/checkpoints")
if grep -q '^bpe:' "$config/train.yaml"; then
    overrides+=("bpe.bpe_codes=$work/data-bin/codes")
fi
fairseq-hydra-train --config-dir "$config" --config-name train "${overrides[@]}" "hydra.run.dir=$work/train" "$@"
