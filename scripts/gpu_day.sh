#!/usr/bin/env bash
# Tests, verification and speed on a GPU. PARTs need a machine with a GPU, its driver and a PyTorch for it; no network.
#   here:    bash scripts/gpu_day.sh pack [FOLDER]      wheels of all but PyTorch, into FOLDER (default work/gpu_pack)
#   there:   bash scripts/gpu_day.sh install [FOLDER]   .venv of the machine's own PyTorch and the wheels
#            bash scripts/gpu_day.sh PART               one of the parts below; reports in $OUT (default work/gpu)
# Parts, in the order in which a day on a GPU runs them, about three minutes each:
#   tests     pytest tests/cuda (training in fp16, too), aggdec verify --thorough in fp16 and fp32
#   base      every mode of a random base model, alone and in batches of 8 and 32, beside fairseq and CTranslate2
#   profile   where the time of an iteration goes: host, kernels, gaps
#   big       big and BART-large (12+12)
#   shipped   the two models of this package, on work/jfleg and work/tatoeba_en_de of scripts/measure.sh
#   memory    peak memory of base and big in every mode
#   exact     --bit-exact: the same bits in every batch; verification in it
#   pair      a pair of base size on Tatoeba: trains, distils, prints the papers' Table 5 (an hour; resumes)
# Bring the checked out files and FOLDER. Both machines have the same version of Python (PYTHON names it, default python3).
# fairseq is compiled by `pack`, which needs a C++ compiler. What the parts print is true for that machine only.
set -euo pipefail
root="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"
python="${PYTHON:-python3}" folder="${2:-work/gpu_pack}" out="${OUT:-work/gpu}"
needed=(antlr4-python3-runtime bitarray hydra-core omegaconf packaging PyYAML tqdm tabulate sacremoses subword-nmt joblib
    click regex sacrebleu portalocker colorama lxml pytest pluggy iniconfig pygments hypothesis sortedcontainers cattrs attrs
    filelock ctranslate2) # of fairseq, this plugin, its tests and its peer, without PyTorch and NumPy

aggdec() { python -m "fairseq_aggdec.cli.$1" "${@:2}"; }

of_random() { # of_random SHAPE bench|verify OPTIONS...
    aggdec "$2" --random-model "$1" --keep work/gpu/models --device cuda "${@:3}"
}

modes=beam5,beam1,greedy,iad,gad,aggressive-beam:5
peers=ctranslate2:greedy@fp16,ctranslate2:beam5@fp16
timed=(--fp16 --batch-sizes 1,8,32 --limit 64 --no-memory)

case "${1:-}" in
    tests | base | profile | big | shipped | memory | exact | pair)
        export PATH="$root/.venv/bin:$PATH" PYTHONPATH="$root"
        # CTranslate2 finds the libraries that PyTorch brings, if both are made for the same version of CUDA
        LD_LIBRARY_PATH="$(python -c 'import glob, site; print(":".join(glob.glob(site.getsitepackages()[0] + "/nvidia/*/lib")))'):${LD_LIBRARY_PATH:-}"
        export LD_LIBRARY_PATH
        mkdir -p "$out"
        ;;&
    pack)
        mkdir -p "$folder"
        "$python" -m venv work/gpu_build # fairseq's extensions are compiled beside PyTorch, Cython and NumPy
        pip=(work/gpu_build/bin/python -m pip --disable-pip-version-check)
        "${pip[@]}" install --quiet --constraint scripts/constraints.txt setuptools wheel cython numpy torch
        "${pip[@]}" wheel --quiet --no-deps --no-build-isolation --constraint scripts/constraints.txt \
            --wheel-dir "$folder" fairseq-fixed "${needed[@]}"
        ;;
    install)
        "$python" -c "import torch; assert torch.cuda.is_available(), 'PyTorch sees no GPU'"
        "$python" -m venv --system-site-packages .venv
        # PyTorch may be in an environment of its own
        "$python" -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))' \
            >"$(echo .venv/lib/python*/site-packages)/of_pytorch.pth"
        .venv/bin/python -m pip install --quiet --no-index --no-deps --ignore-installed "$folder"/*.whl
        .venv/bin/python setup.py -q build_ext --inplace
        ;;
    tests)
        python -m pytest -q -p no:cacheprovider tests/cuda -k "not exact"
        of_random base verify --thorough --precisions fp16,fp32 --batch-sizes 1,8,32 --limit 32 --json "$out/verify_base.json"
        ;;
    base) of_random base bench "${timed[@]}" --no-profile --modes "$modes,$peers" --json "$out/random_base.json" ;;
    profile) of_random base bench "${timed[@]}" --profile --modes beam1,greedy,iad,gad --json "$out/random_base_profile.json" ;;
    big)
        for shape in big bart-large; do
            of_random "$shape" bench "${timed[@]}" --no-profile --limit 16 --modes "$modes,$peers" --json "$out/random_$shape.json"
        done
        ;;
    shipped)
        # the data-bins of scripts/measure.sh, brought along
        aggdec bench work/jfleg/data-bin -s src -t tgt --gen-subset test1 --path fairseq_aggdec/demo/gec/model.pt \
            --device cuda "${timed[@]}" --no-profile --modes beam5,beam1,greedy,iad,aggressive-beam:5 --json "$out/shipped_gec.json"
        aggdec bench work/tatoeba_en_de/data-bin --path fairseq_aggdec/demo/mt/model.pt --drafter-path fairseq_aggdec/demo/mt/drafter.pt \
            --device cuda "${timed[@]}" --no-profile --modes "$modes" --json "$out/shipped_mt.json"
        ;;
    memory)
        for shape in base big; do
            of_random "$shape" bench --fp16 --batch-sizes 1,32 --limit 32 --repeats 1 --no-profile --memory \
                --modes beam5,greedy,iad,gad,aggressive-beam:5 --json "$out/memory_$shape.json"
        done
        ;;
    exact)
        python -m pytest -q -p no:cacheprovider tests/cuda -k exact
        of_random base verify --precisions exact --batch-sizes 1,8,32 --limit 32 --json "$out/verify_exact.json"
        ;;
    pair) bash scripts/reproduce.sh tatoeba_en_de_base ;;
    *) sed -n '2,19s/^# //p' "${BASH_SOURCE[0]}" >&2 && exit 2 ;;
esac
