#!/usr/bin/env bash
# Tests, verification and speed on a GPU. PARTs need a machine with a GPU, its driver and a PyTorch for it; no network.
#   here:    bash scripts/gpu_day.sh pack [FOLDER]      wheels of all but PyTorch, into FOLDER (default work/gpu_pack)
#   there:   bash scripts/gpu_day.sh install [FOLDER]   .venv of the machine's own PyTorch and the wheels
#            bash scripts/gpu_day.sh first              what one wants to know of today's engine, in 14 minutes at most
#            bash scripts/gpu_day.sh PART...            some of the parts below, in this order
# Parts of `first`, with the seconds that their limits add up to; records and logs in $OUT (default work/gpu):
#   right     (325) side by side: pytest tests/cuda; aggdec verify of base, bit-exact, in fp16 and in bf16; random models written
#   base      (260) every mode of a random base model, alone and in batches of 8 and 32, beside fairseq and CTranslate2: one run;
#             after `right`, which has compiled and written what it needs
#   profile   (60) where the time of an iteration goes
#   large     (150) BART-large and big, a sentence alone
# Others:
#   memory    peak memory of base and big, 32 sentences
#   loops     AGGDEC_GPU=loops, which has not run on a GPU: verification; without and with it, one run each, base with simulated
#             drafts and the shipped pair on its own sentences; times side by side, and where the two took other iterations
#   passes    us of a pass of base, of eight sizes
#   shipped   the two models of this package; before `pack`: scripts/measure.sh work/benchmarks none, whose data then travel
#   pair      a pair of base size on Tatoeba: trains, distils, prints the papers' Table 5 (an hour; resumes)
#   evidence  a translator with three drafters and a corrector of base size, each trained for minutes, and with them the papers'
#             Tables 1 and 5 (eleven minutes; started again, it goes on): numbers in evidence.json, outputs and curves in
#             evidence.tar.xz. REHEARSE=1 rehearses with tiny models. Before `pack`: scripts/reproduce.sh NAME prepare for
#             gec_base and help_en_de_base, whose data then travel.
# DEVICE=cpu rehearses: tiny counts, two minutes a part, times that mean nothing. Bring the checked out files and FOLDER.
# Both machines have the same version of Python (PYTHON names it, default python3). fairseq is compiled by `pack`, which
# needs a C++ compiler. What the parts print is true for that machine only.
set -euo pipefail
root="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"
python="${PYTHON:-python3}" out="${OUT:-work/gpu}" device="${DEVICE:-cuda}" models=work/gpu_models
needed=(antlr4-python3-runtime bitarray hydra-core omegaconf packaging PyYAML tqdm tabulate sacremoses subword-nmt joblib
    click regex sacrebleu portalocker colorama lxml pytest pytest-xdist execnet pluggy iniconfig pygments hypothesis
    sortedcontainers cattrs attrs filelock tyro docstring_parser typeguard ctranslate2 setuptools)
# of fairseq, this plugin, its tests, its peer and its compilation, without PyTorch and NumPy

[[ -z ${REHEARSE:-} ]] || device=cpu
evidence=(gec_base help_en_de_base)
half=(--fp16) processes=12 batches=1,8,32 sentences=32
if [[ $device == cpu ]]; then
    half=() processes=2 batches=1,2 sentences=2
fi

# step SECONDS NAME COMMAND...: a command with a limit; its output is in $out/NAME.log, how it ended is printed at once.
step() {
    local seconds="$1" name="$2" began=$SECONDS
    how=done
    shift 2
    timeout --kill-after=5 "$seconds" "$@" >"$out/$name.log" 2>&1 || how="FAILED ($?; 124 and 137: its $seconds s were up)"
    # one write, so that steps side by side do not mix their lines
    printf '%s\n' "== $name: $how, $((SECONDS - began)) s" "$(grep -v -E '^\s*$|Warning|warn' "$out/$name.log" |
        tail -n "${SHOWN:-12}" | cut -c 1-220)" | tee -a "$out/summary.txt"
}

of_random() { # of_random SHAPE bench|verify OPTIONS...: as words of a command
    command=(python -m fairseq_aggdec.cli.verbs "$2" --random-model "$1" --keep "$models" --device "$device" "${@:3}")
}

bench() { # bench SECONDS NAME SHAPE OPTIONS...
    of_random "$3" bench "${half[@]}" --no-profile --no-memory --json "$out/$2.json" "${@:4}"
    SHOWN=60 step "$1" "$2" "${command[@]}"
}

verify() { # verify SECONDS NAME SHAPE OPTIONS...
    of_random "$3" verify --json "$out/$2.json" --modes greedy,iad,gad,gad++,speculative,aggressive-beam:5 "${@:4}"
    step "$1" "$2" "${command[@]}"
}

shipped() { # shipped SECONDS NAME gec|mt DATA OPTIONS...: time a model of this package, with its drafter if it has one
    local folder="fairseq_aggdec/demo/$3" drafter=()
    [[ ! -f $folder/drafter.pt ]] || drafter=(--drafter-path "$folder/drafter.pt")
    SHOWN=60 step "$1" "$2" python -m fairseq_aggdec.cli.verbs bench "$4" --path "$folder/model.pt" "${drafter[@]}" \
        --device "$device" "${half[@]}" --batch-sizes "$batches" --no-memory --no-profile --json "$out/$2.json" "${@:5}"
}

binarize_sentences() { # binarize_sentences FOLDER: FOLDER/bin has the sentences that come with the shipped pair, as its source
    local demo=fairseq_aggdec/demo/mt
    mkdir -p "$1"
    step 30 pair_subwords bash -o pipefail -c 'sacremoses -l en tokenize -x <"$0/sentences.txt" |
        subword-nmt apply-bpe -c "$0/bpecodes" | tee "$1/test.en" >"$1/test.de"' "$demo" "$1"
    step 30 pair_data fairseq-preprocess -s en -t de --testpref "$1/test" --srcdict "$demo/dict.en.txt" \
        --tgtdict "$demo/dict.de.txt" --destdir "$1/bin"
}

# of_experiment SECONDS EXPERIMENT STAGE: a stage as a step; a rehearsal has ten times the time
of_experiment() {
    SHOWN="${SHOWN:-5}" step "$1${REHEARSE:+0}" "$2_$3" bash scripts/reproduce.sh "$2" "$3"
}

prepare() {
    export PATH="$root/.venv/bin:$PATH" PYTHONPATH="$root" OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
    # CTranslate2 finds there the cuBLAS that `install` has linked for it
    export LD_LIBRARY_PATH="$root/.venv/cublas:${LD_LIBRARY_PATH:-}"
    [[ $device == cuda ]] || export AGGDEC_TEST_DEVICE=$device
    [[ ! -f work/gpu_pack/commit || -n ${AGGDEC_COMMIT:-} ]] || AGGDEC_COMMIT="$(<work/gpu_pack/commit)"
    export AGGDEC_COMMIT="${AGGDEC_COMMIT:-}"
    mkdir -p "$out"
}

run() {
    case "$1" in
        right)
            local size
            step 240 tests python -m pytest -q -p no:cacheprovider -n "$processes" tests/cuda &
            # the models that the later parts read are written meanwhile, the one for the verifications first
            for size in base big bart-large; do
                command=(python -m fairseq_aggdec.cli.verbs bench --random-model "$size" --keep "$models" --device cpu --length 2
                    --limit 1 --repeats 1 --no-profile --no-memory --modes gad,speculative)
                SHOWN=1 step 150 "write_$size" "${command[@]}" &
                if [[ $size == base ]]; then wait $!; fi
            done
            if [[ $device == cuda ]]; then
                verify 170 verify_exact base --precisions exact --batch-sizes 1,8,32 --limit 32 &
                verify 170 verify_fp16 base --precisions fp16 --batch-sizes 1,8,32 --limit 8 &
                verify 170 verify_bf16 base --precisions bf16 --batch-sizes 1,8,32 --limit 8 &
            fi
            wait
            ;;
        base)
            local peer=() modes=beam5 one
            [[ $device == cpu ]] || peer=(ctranslate2:greedy@fp16 ctranslate2:beam5@fp16)
            # a peer that does not run here must not take the others' time
            bench 60 peer base --batch-sizes 1 --limit 1 --repeats 1 --modes "greedy,ctranslate2:greedy${half:+@fp16}"
            [[ $how == done ]] || peer=()
            for one in beam1 greedy iad gad gad++ speculative aggressive-beam:5 "${peer[@]}"; do modes+=",$one"; done
            bench 200 random_base base --batch-sizes "$batches" --limit "$sentences" --modes "$modes"
            ;;
        profile)
            of_random base bench "${half[@]}" --batch-sizes 1 --limit 8 --profile --no-memory \
                --modes beam1,greedy,iad,gad --json "$out/random_base_profile.json"
            SHOWN=60 step 60 random_base_profile "${command[@]}"
            ;;
        large)
            bench 75 random_bart-large bart-large --limit 4 --batch-sizes 1 --modes beam5,greedy,iad,gad,aggressive-beam:5
            bench 75 random_big big --limit 8 --batch-sizes 1 --modes beam5,greedy,iad,gad,aggressive-beam:5
            ;;
        memory)
            local size
            for size in base big; do
                of_random "$size" bench "${half[@]}" --batch-sizes 32 --limit "$sentences" --repeats 1 --no-profile --memory \
                    --modes beam5,greedy,iad,gad,aggressive-beam:5 --json "$out/memory_$size.json"
                SHOWN=60 step 100 "memory_$size" "${command[@]}"
            done
            ;;
        loops)
            local modes=beam5,greedy,iad,gad,aggressive-beam:5 precision=fp16 switch name
            [[ $device == cuda ]] || precision=fp32
            export AGGDEC_GPU=loops
            verify 120 loops_verify base --precisions "$precision" --batch-sizes "$batches" --limit "$((sentences / 4 + 1))"
            for switch in "" loops; do
                export AGGDEC_GPU=$switch
                # drafts as long as a loop has them
                bench 150 "loops_${switch:-off}" base --block-size 23 --batch-sizes "$batches" --limit "$sentences" --modes "$modes"
            done
            binarize_sentences "$out/pair"
            for switch in "" loops; do
                export AGGDEC_GPU=$switch
                shipped 60 "pair_${switch:-off}" mt "$out/pair/bin" --modes beam5,greedy,gad,aggressive-beam:5
            done
            for name in loops pair; do
                SHOWN=40 step 20 "${name}_counts" python configs/shared/measuring/compare_counts.py "$out/${name}"_{off,loops}.json
            done
            ;;
        shipped)
            shipped 200 shipped_gec gec work/jfleg/data-bin -s src -t tgt --gen-subset test1 --limit 64 \
                --modes beam5,beam1,greedy,iad,aggressive-beam:5
            shipped 200 shipped_mt mt work/tatoeba_en_de/data-bin --limit 64 --modes beam5,beam1,greedy,gad,aggressive-beam:5
            ;;
        passes)
            [[ $device == cuda ]] || export AGGDEC_BACKEND=graphs
            SHOWN=20 step 200 passes python configs/shared/measuring/pass_times.py "$device" "$models/base-fp16"
            ;;
        pair) bash scripts/reproduce.sh tatoeba_en_de_base ;;
        evidence)
            local one
            # side by side where nothing is timed; a training ends before its limit, to be averaged
            TRAIN_HOURS=0.055 of_experiment 250 help_en_de_base verifier &
            TRAIN_HOURS=0.055 of_experiment 250 gec_base train &
            wait
            of_experiment 75 help_en_de_base redistill
            for one in drafter papers_drafter heads; do
                TRAIN_HOURS=0.036 of_experiment 165 help_en_de_base "$one" &
            done
            of_experiment 160 gec_base decode &
            wait
            SHOWN=40 of_experiment 90 gec_base bench
            for one in bench bench_papers bench_heads decode; do
                SHOWN=60 of_experiment 110 help_en_de_base "$one"
                step 30 evidence python scripts/evidence.py "$out" "${evidence[@]}"
            done
            for one in score table; do
                SHOWN=40 of_experiment 40 gec_base "$one" &
                SHOWN=40 of_experiment 40 help_en_de_base "$one"
                wait
            done
            step 30 evidence python scripts/evidence.py "$out" "${evidence[@]}"
            ;;
        *) usage ;;
    esac
}

usage() {
    sed -n '2,/^set/s/^# \?//p' "${BASH_SOURCE[0]}" | grep -v '^set' >&2
    exit 2
}

pack() {
    local folder="$1" wheel
    scratch="$(mktemp -d)"
    trap 'rm -rf "${scratch:-}"' EXIT
    mkdir -p "$folder"
    "$python" -m venv work/gpu_build # fairseq's extensions are compiled beside PyTorch, Cython and NumPy
    pip=(work/gpu_build/bin/python -m pip --disable-pip-version-check)
    "${pip[@]}" install --quiet --constraint scripts/constraints.txt setuptools wheel cython numpy torch
    "${pip[@]}" wheel --quiet --no-deps --no-build-isolation --constraint scripts/constraints.txt \
        --wheel-dir "$scratch" fairseq-fixed "${needed[@]}"
    # nine tenths of some are information for debuggers; packed together, what is left has a third of its size
    for wheel in "$scratch"/*.whl; do
        work/gpu_build/bin/python -m wheel unpack --dest "$scratch/unpacked" "$wheel" >/dev/null
        find "$scratch/unpacked" -name '*.so*' -type f -exec strip -g {} +
        find "$scratch/unpacked" -path '*/fairseq/examples/*' -type f ! -name '*.py' -delete
        rm "$wheel"
        (cd "$scratch"/unpacked/* && "$root/work/gpu_build/bin/python" -c "import sys
from zipfile import ZipFile
from pathlib import Path
with ZipFile(sys.argv[1], 'w') as stored:
    for path in Path('.').rglob('*'):
        stored.write(path)" "$wheel")
        rm -rf "$scratch/unpacked"
    done
    tar -C "$scratch" -c . | xz -T0 -9 >"$folder/wheels.tar.xz"
    if [[ -d work/gec_base/data-bin && -d work/help_en_de_base/data-bin ]]; then
        find "${evidence[@]/#/work/}" -path '*/data-bin/*' -o -regex '.*/\(tok\|text\)/\(test\|jfleg\|tatoeba\).*' |
            tar -c --files-from=- | xz -T0 -9 >"$folder/evidence.tar.xz"
    fi
    if [[ -d work/jfleg/data-bin && -d work/tatoeba_en_de/data-bin ]]; then
        find work/jfleg/data-bin work/tatoeba_en_de/data-bin -name 'dict.*' -o -name 'test*' |
            tar -c --files-from=- | xz -T0 -9 >"$folder/shipped.tar.xz"
    fi
    git describe --always --dirty --abbrev=12 '--exclude=*' >"$folder/commit"
    echo "$folder: $(du -sh "$folder" | cut -f 1)"
}

install() {
    local folder="$1" packages library data
    [[ $device == cpu ]] || "$python" -c "import torch; assert torch.cuda.is_available(), 'PyTorch sees no GPU'"
    "$python" -m venv --system-site-packages .venv
    # PyTorch may be in an environment of its own
    packages="$("$python" -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))')"
    echo "$packages" >"$(echo .venv/lib/python*/site-packages)/of_pytorch.pth"
    for data in "$folder"/{evidence,shipped}.tar.xz; do
        [[ ! -f $data ]] || tar -xJf "$data"
    done
    mkdir -p .venv/wheels
    tar -xJf "$folder/wheels.tar.xz" -C .venv/wheels
    .venv/bin/python -m pip install --quiet --no-index --no-deps --no-compile --ignore-installed .venv/wheels/*.whl
    .venv/bin/python setup.py -q build_ext --inplace
    mkdir -p .venv/cublas # the few functions that CTranslate2 takes from cuBLAS 12 are in 13, too
    for library in "$packages"/nvidia/*/lib/libcublas*.so.13; do
        [[ ! -e $library ]] || ln -sf "$library" ".venv/cublas/$(basename "${library%13}")12"
    done
}

case "${1:-}" in
    pack) pack "${2:-work/gpu_pack}" ;;
    install) install "${2:-work/gpu_pack}" ;;
    first)
        prepare
        for part in right base profile large; do run "$part"; done
        ;;
    "") usage ;;
    *)
        prepare
        for part in "$@"; do run "$part"; done
        ;;
esac
