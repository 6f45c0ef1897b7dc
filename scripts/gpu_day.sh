#!/usr/bin/env bash
# All tests and measurements that need a GPU, on a machine with a GPU, PyTorch, Python 3.11 or 3.12 and no network: docs/gpu-day.md.
# scripts/gpu_day.sh pack [FOLDER] [--without NAME]...   here: gathers wheels and data in FOLDER (default work/gpu_pack)
# scripts/gpu_day.sh run [PART...] [--rehearse]          there: runs unfinished steps, at most nine minutes a call
# scripts/gpu_day.sh report [PART...] [--rehearse]       prints what was measured, as Markdown
# Environment: TARGET, the version of the machine's Python (default 3.12); LIMIT_MB, the size of FOLDER and the checked
# out files together (default 64); GPU_PACK, the FOLDER that `run` takes (default work/gpu_pack); OUT, a further folder for results.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

needed=(bitarray hydra-core omegaconf packaging PyYAML tqdm tabulate # of fairseq and this plugin
    sacremoses subword-nmt joblib cloudpickle click regex sacrebleu portalocker colorama lxml
    pytest pluggy iniconfig pygments hypothesis sortedcontainers ctranslate2)
data_set=tatoeba-en-de
data="${AGGDEC_DATA:-$root/../shared/data}"

die() {
    printf 'gpu_day: %s\n' "$@" >&2
    exit 1
}

# fairseq without the parts that nothing here uses: its examples, its PyTorch extensions and the code that needs
# scikit-learn. It has a megabyte and compiles in half a minute. pack_fairseq FOLDER
pack_fairseq() {
    local unpacked
    "${pip[@]}" download --no-deps --no-build-isolation --no-binary :all: --dest "$scratch/fairseq" \
        --constraint "$root/scripts/constraints.txt" fairseq-fixed
    tar -xzf "$scratch"/fairseq/fairseq_fixed-*.tar.gz -C "$scratch/fairseq"
    unpacked="$(echo "$scratch"/fairseq/fairseq_fixed-*/)"
    rm -rf "$unpacked"{fairseq/examples,examples,tests} "$unpacked"fairseq/tasks/audio_classification.py \
        "$unpacked"fairseq/criterions/sentence_prediction{,_adapters}.py
    sed -i -e 's/\r$//' -e 's/^from torch.utils import cpp_extension$/from setuptools.command.build_ext import build_ext/' \
        -e 's/cpp_extension\.CppExtension(/(lambda *_, **__: None)(/' -e 's/cpp_extension\.BuildExtension/build_ext/' \
        -e 's/^cmdclass = /extensions = [one for one in extensions if isinstance(one, Extension)]\n&/' "$unpacked/setup.py"
    if "python$TARGET" -c "" 2>/dev/null; then
        "python$TARGET" -m venv "$scratch/venv"
        "$scratch/venv/bin/python" -m pip install --quiet --constraint "$root/scripts/constraints.txt" \
            setuptools wheel cython numpy
        "$scratch/venv/bin/python" -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$1" "$unpacked"
    else
        echo "gpu_day: no python$TARGET here: the machine compiles fairseq itself (C++ compiler, Cython)" >&2
        tar -czf "$1/fairseq_fixed.tar.gz" -C "$scratch/fairseq" "$(basename "$unpacked")"
    fi
}

pack() {
    local default="$root/work/gpu_pack" folder without=" " names=() name size limit="${LIMIT_MB:-64}"
    folder="$default"
    while (($#)); do
        case "$1" in
            --without) without+="${2:?--without NAME} "; shift 2 ;;
            -*) die "unknown option $1" ;;
            *) folder="$(realpath -m -- "$1")"; shift ;;
        esac
    done
    if [[ "$folder" != "$default" && ! -e "$folder/.gpu_pack" && -n "$(ls -A "$folder" 2>/dev/null)" ]]; then
        die "$folder is not empty, and pack did not make it: name another folder, a new one for example"
    fi
    scratch="$(mktemp -d)"
    trap 'rm -rf "$scratch"' EXIT
    rm -rf "$folder/commit" "$folder/wheels" "$folder/data"
    mkdir -p "$folder/wheels"
    touch "$folder/.gpu_pack"
    pip=(python -m pip --quiet --disable-pip-version-check)
    pip_options=(--no-deps --dest "$folder/wheels" --constraint "$root/scripts/constraints.txt" --only-binary :all:
        --python-version "$TARGET" --implementation cp)
    for name in 2_28 2_27 2_17; do pip_options+=(--platform "manylinux_${name}_$(uname -m)"); done
    pip_options+=(--platform "manylinux2014_$(uname -m)")
    for name in "${needed[@]}"; do
        [[ "$without" == *" $name "* ]] || names+=("$name")
    done
    pack_fairseq "$folder/wheels"
    "${pip[@]}" wheel --no-deps --constraint "$root/scripts/constraints.txt" --wheel-dir "$folder/wheels" \
        antlr4-python3-runtime # has no wheel
    "${pip[@]}" download "${pip_options[@]}" "${names[@]}"
    python -m fairseq_aggdec.lab.gpu_day.smaller_wheels "$folder"/wheels/*.whl
    if [[ "$without" != *" $data_set "* ]]; then
        mkdir -p "$folder/data/$data_set"
        cp "$data/$data_set/deu.txt.gz" "$folder/data/$data_set"
    fi
    git -C "$root" describe --always --dirty --abbrev=12 '--exclude=*' >"$folder/commit"
    size=$(cd "$root" && { find "$folder" -type f -print0; git ls-files -z; } |
        du --files0-from=- -cb | tail -n 1 | cut -f 1)
    echo "$folder: $(du -sh "$folder" | cut -f 1), with the checked out files $((size >> 20)) of $limit MB"
    ((size <= limit << 20)) ||
        die "that is more than LIMIT_MB=$limit: --without NAME leaves something out that the machine has or that can wait" \
            "(a package, ctranslate2 or $data_set): $(cd "$folder" && du -ab . | sort -rn | grep -E '\.(whl|gz)' | head -n 6 |
                awk '{printf "%s %.1f MB  ", $2, $1 / 1e6}')"
}

# Makes .venv from the machine's own PyTorch and the pack.
install() {
    local python="${PYTHON:-python3}" new="$root/.venv.partial" packages library
    [[ -d "$pack/wheels" ]] ||
        die "no .venv here, and no wheels in $pack: bring what scripts/gpu_day.sh pack made (GPU_PACK names its folder)," \
            "or run scripts/setup.sh where there is a network"
    [[ -f "$pack/commit" ]] || die "$pack is not complete: run scripts/gpu_day.sh pack again, to its end, and bring that"
    packages="$("$python" -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))')" ||
        die "$python has no PyTorch, which is too large to be brought: PYTHON names one that has"
    "$python" -m venv --clear --without-pip "$new"
    echo "$packages" >"$("$new/bin/python" -c 'import site; print(site.getsitepackages()[0])')/pytorch.pth"
    "$python" -m pip --disable-pip-version-check install --quiet --no-index --no-deps --no-build-isolation --no-compile \
        --prefix "$new" --ignore-installed "$pack"/wheels/*
    sed -i "1c #!$root/.venv/bin/python" "$new"/bin/fairseq-*
    # CTranslate2 asks for the cuBLAS of CUDA 12; the few functions that it calls are in that of CUDA 13, too
    for library in "$packages"/nvidia/*/lib/libcublas*.so.13; do
        [[ -e "$library" ]] || break
        mkdir -p "$new/cublas"
        ln -sf "$library" "$new/cublas/"
        ln -sf "$library" "$new/cublas/$(basename "${library%13}")12"
    done
    mv "$new" "$root/.venv"
}

TARGET="${TARGET:-3.12}"
pack="${GPU_PACK:-$root/work/gpu_pack}"
action="${1:-}"
case "$action" in
    pack)
        shift
        source "$root/scripts/environment.sh"
        pack "$@"
        ;;
    run | report)
        [[ -d "$root/.venv" ]] || install
        source "$root/scripts/environment.sh"
        if [[ -z "${AGGDEC_DATA:-}" && -d "$pack/data" ]]; then
            data="$pack/data"
        fi
        export AGGDEC_DATA="$data"
        if [[ -f "$pack/commit" ]]; then # the carried files may be no git checkout
            export AGGDEC_COMMIT="${AGGDEC_COMMIT:-$(<"$pack/commit")}"
        fi
        if [[ -d "$root/.venv/cublas" ]]; then
            export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$root/.venv/cublas"
        fi
        exec python -m fairseq_aggdec.cli.gpu_day "$@"
        ;;
    *)
        sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}" >&2
        exit 2
        ;;
esac
