#!/usr/bin/env bash
# Whole test sets by stock fairseq-generate --beam 5 --nbest 5 and by --decoding aggressive-beam: counts the lists that are
# equal (docs/aggressive-beam.md). usage: bash scripts/beam_lists.sh [--sets NAME...] [--work FOLDER] [--limit N]
# A stopped call goes on where it was. The records are WORK/NAME.json (default work/beam_lists).
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

cd "$root"
exec python -m fairseq_aggdec.lab.lossless.beam_lists "$@"
