#!/usr/bin/env bash
# Passes and prefixes of aggressive beam search without one part of its look-ahead after another (docs/aggressive-beam.md):
# the shipped models on a hundred sentences of JFLEG and of Tatoeba. usage: bash scripts/beam_ablation.sh [FOLDER]
# The records are FOLDER/jfleg.json and FOLDER/tatoeba_en_de.json (default work/beam_ablation); a record that is there stays.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

cd "$root"
folder="${1:-work/beam_ablation}" demo=fairseq_aggdec/demo
counted() { # NAME OPTIONS...
    [[ -e "$folder/$1.json" ]] ||
        python -m fairseq_aggdec.lab.benchmarking.beam_ablation "${@:2}" --limit 100 --json "$folder/$1.json"
}
counted jfleg work/jfleg/data-bin --path $demo/gec/model.pt -s src -t tgt --gen-subset test1
counted tatoeba_en_de work/tatoeba_en_de/data-bin --path $demo/mt/model.pt --drafter-path $demo/mt/drafter.pt
