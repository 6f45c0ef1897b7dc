#!/usr/bin/env bash
# Time the shipped models and random ones on this machine: records of README, docs/measurements.md and
# docs/aggressive-beam.md. usage: bash scripts/measure.sh [FOLDER [RECORD...]]     RECORD: only these, such as shipped_gec_jfleg_cpu;
# those of README's first table are shipped_gec_jfleg_cpu shipped_mt_tatoeba_cpu shipped_mt_tatoeba_beams_cpu (six minutes)
# The records are FOLDER/NAME.json (default work/benchmarks, below the repository's root); one that is there stays, so that a
# stopped call goes on: remove one that was measured while something else ran. Half an hour on two quiet cores, and some minutes
# of preparing data before. docs/benchmarks/README.md says how the tables are written out of the records.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

cd "$root"
folder="${1:-work/benchmarks}" demo=fairseq_aggdec/demo
export AGGDEC_DATA="${AGGDEC_DATA:-../shared/data}"
mkdir -p "$folder"
[[ -d work/jfleg/data-bin ]] || aggdec prepare configs/gec_small/jfleg.py --data "$AGGDEC_DATA" --work work/jfleg
[[ -d work/tatoeba_en_de/data-bin ]] || bash scripts/reproduce.sh tatoeba_en_de prepare

threads=2 only=" ${*:2} "
timed() { # NAME OPTIONS...
    if [[ "$only" == *[!\ ]* && "$only" != *" $1 "* ]]; then
        return
    elif [[ -e "$folder/$1.json" ]]; then
        echo "measure: $folder/$1.json is there" >&2
    else
        echo "measure: $folder/$1.json" >&2
        aggdec bench --threads "$threads" --no-memory --no-profile "${@:2}" --json "$folder/$1.json"
    fi
}
gec=(work/jfleg/data-bin --path $demo/gec/model.pt -s src -t tgt --gen-subset test1)
mt=(work/tatoeba_en_de/data-bin --path $demo/mt/model.pt --drafter-path $demo/mt/drafter.pt)
int8='' beam_int8='' # where this processor has int8 products
if python -c 'from fairseq_aggdec.engine.native.library import kernels; raise SystemExit(not (kernels() and kernels().quantises))'; then
    int8=,greedy@int8,iad@int8 beam_int8=,aggressive-beam:5@int8
fi
beams=(--modes "beam5,aggressive-beam:5:0,aggressive-beam:5$beam_int8" --peers ctranslate2:beam5,ctranslate2:beam5@int8
    --batch-sizes 1,8,32 --limit 128 --repeats 3)

timed shipped_gec_jfleg_cpu "${gec[@]}" --modes beam5,beam1,greedy,iad --limit 250 --repeats 3
timed shipped_mt_tatoeba_cpu "${mt[@]}" --modes beam5,beam1,greedy,nar,gad,gad++:3:1,gad++:5:3 --limit 200 --repeats 4 \
    --reference work/tatoeba_en_de/text/test.de --profile
timed random_big_cpu --random-model big --modes "beam5,beam1,greedy,iad,gad,iad@exact$int8" --peers ctranslate2 --limit 4 --repeats 3
timed random_big_fp32_cpu --random-model big --trained-in fp32 --modes "beam5,greedy,iad,gad,aggressive-beam:5" --limit 4 --repeats 3
timed random_base_cpu --random-model base --modes "beam5,beam1,greedy,iad,gad$int8" --peers ctranslate2 --limit 5 --repeats 3
timed shipped_gec_jfleg_batches_cpu "${gec[@]}" --modes beam5,greedy,iad --batch-sizes 1,8,32 --limit 192 --repeats 5
timed shipped_mt_tatoeba_batches_cpu "${mt[@]}" --modes beam5,greedy,iad,gad,gad++:5:3 --batch-sizes 1,8,32 --limit 256 --repeats 5
timed random_big_batches_cpu --random-model big --modes greedy,iad,gad --batch-sizes 8,32 --edit-ratio 0.1 --limit 32 --repeats 2
timed shipped_gec_jfleg_beams_cpu "${gec[@]}" "${beams[@]}"
timed shipped_mt_tatoeba_beams_cpu "${mt[@]}" "${beams[@]}"
timed random_big_beams_cpu --random-model big --modes "beam5,aggressive-beam:5:0,aggressive-beam:5$beam_int8" \
    --peers ctranslate2:beam5,ctranslate2:beam5@int8 --limit 4 --repeats 3
# on two cores, CTranslate2's int8 is often slower with two threads than with one
threads=1
timed shipped_gec_jfleg_one_thread_cpu "${gec[@]}" --modes "beam5,aggressive-beam:5,greedy,iad$int8$beam_int8" --peers ctranslate2 \
    --limit 100 --repeats 3
timed shipped_mt_tatoeba_one_thread_cpu "${mt[@]}" --modes "beam5,aggressive-beam:5,greedy,gad$beam_int8" --peers ctranslate2 \
    --limit 100 --repeats 3
timed random_base_one_thread_cpu --random-model base --modes "beam5,greedy,iad,gad$int8" --peers ctranslate2 --limit 5 --repeats 3
timed random_big_one_thread_cpu --random-model big --modes "beam5,greedy,iad,gad$int8" --peers ctranslate2 --limit 4 --repeats 3
