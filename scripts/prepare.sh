#!/usr/bin/env bash
# Raw text to fairseq's binary data: scripts/prepare.sh EXPERIMENT
# Reads $AGGDEC_DATA (default ../shared/data), writes $AGGDEC_WORK/EXPERIMENT (default work/EXPERIMENT). The `data_sets` that
# prepare.yaml names are fetched into $AGGDEC_DATA first; configs/shared/data has their addresses, and says which data is
# available on request only. A finished stage is not run again; a stopped one continues.
source "$(dirname -- "${BASH_SOURCE[0]}")/stage.sh"

if grep -q '^data_sets:' "$config/prepare.yaml"; then
    python -m fairseq_aggdec.cli.fetch "$config/prepare.yaml" --descriptions "$shared/data" --data "$data"
fi
python -m fairseq_aggdec.cli.prepare "$config/prepare.yaml" --data "$data" --work "$work" --workers "$(nproc)" "$@"
