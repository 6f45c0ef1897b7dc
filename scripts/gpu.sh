#!/usr/bin/env bash
# Tests, verification and speed on a GPU. `run` needs a machine with a GPU, its driver and a PyTorch for it; no network.
#   here:    bash scripts/gpu.sh pack [FOLDER]      wheels of all but PyTorch, into FOLDER (default work/gpu_pack)
#   there:   bash scripts/gpu.sh install [FOLDER]   .venv of the machine's own PyTorch and the wheels
#            bash scripts/gpu.sh run                pytest tests/cuda, aggdec verify, aggdec bench; reports in work/gpu
# Bring the checked out files and FOLDER. Both machines have the same version of Python (PYTHON names it, default python3).
# fairseq is compiled by `pack`, which needs a C++ compiler. What `run` prints is true for that machine only.
set -euo pipefail
root="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"
python="${PYTHON:-python3}" folder="${2:-work/gpu_pack}"
needed=(antlr4-python3-runtime bitarray hydra-core omegaconf packaging PyYAML tqdm tabulate sacremoses subword-nmt joblib
    click regex sacrebleu portalocker colorama lxml pytest pluggy iniconfig pygments hypothesis sortedcontainers cattrs attrs
    filelock) # of fairseq, this plugin and its tests, without PyTorch and NumPy

case "${1:-}" in
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
        .venv/bin/python -m pip install --quiet --no-index --no-deps --ignore-installed "$folder"/*.whl
        .venv/bin/python setup.py -q build_ext --inplace
        ;;
    run)
        export PATH="$root/.venv/bin:$PATH" PYTHONPATH="$root"
        mkdir -p work/gpu
        aggdec() { python -m "fairseq_aggdec.cli.$1" --random-model base --keep work/gpu/models --device cuda "${@:2}"; }
        python -m pytest -q -p no:cacheprovider tests/cuda
        aggdec verify --precisions fp32,fp16,bf16 --batch-sizes 1,8,32 --limit 32 --json work/gpu/verify.json
        aggdec bench --fp16 --batch-sizes 1,8,32 --limit 32 --no-profile --json work/gpu/bench.json \
            --modes beam5,beam1,greedy,iad,gad,aggressive-beam:5
        ;;
    *) sed -n '2,7s/^# //p' "${BASH_SOURCE[0]}" >&2 && exit 2 ;;
esac
