#!/usr/bin/env bash
# Raw text to fairseq's binary data: scripts/prepare.sh EXPERIMENT
# Reads $AGGDEC_DATA (default ../shared/data), writes $AGGDEC_WORK/EXPERIMENT (default work/EXPERIMENT). A finished stage is
# not run again; a stopped one goes on.
source "$(dirname "$0")/stage.sh"

python -m fairseq_aggdec.cli.prepare "$config/prepare.yaml" --data "$data" --work "$work" --workers "$(nproc)" "$@"
