#!/usr/bin/env bash
# Raw text to fairseq's binary data: scripts/prepare.sh EXPERIMENT
# Reads $AGGDEC_DATA (default ../shared/data), writes $AGGDEC_WORK/EXPERIMENT (default work/EXPERIMENT). Data sets of
# full size are downloaded into $AGGDEC_DATA first; an error says which data is available on request only. A finished stage is not run again; a stopped one continues.
source "$(dirname -- "${BASH_SOURCE[0]}")/stage.sh"

python -m fairseq_aggdec.cli.verbs prepare "$config/prepare.py" --data "$data" --work "$work" --workers "$(nproc)" "$@"
