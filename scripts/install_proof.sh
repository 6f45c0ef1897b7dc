#!/usr/bin/env bash
# Install without a compiler, and time it: from an empty folder to the first corrected sentence, by the wheel and by a checkout.
# usage: bash scripts/install_proof.sh [PYTHON ...]      default: python3.11 and python3.12, of the path or of pyenv
# Linux on x86_64 with user namespaces. In one, /usr/bin and /usr/local/bin have no C or C++ compiler. What is timed
# begins with this plugin's wheel and with PyTorch's downloaded; all else is downloaded while the clock runs.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
root=$PWD downloads=$PWD/work/install_proof
sentence="She have two brother." corrected="She has two brothers."

die() {
    printf 'install_proof: %s\n' "$@" >&2
    exit 1
}

timed() { # timed WHAT COMMAND...: seconds, and those of the processor, which other processes change less; output where it fails
    local what=$1 status=0 TIMEFORMAT='%R %U %S' times
    shift
    times=$({ time "$@" >"$scratch/log" 2>&1; } 2>&1) || status=$?
    awk -v what="$version: $what" '{ printf "%-40s %6.1f s, of the processor %5.1f s\n", what, $1, $2 + $3 }' <<<"$times"
    if ((status)); then
        cat "$scratch/log" >&2
        die "$what has failed"
    fi
}

corrects() { # corrects VENV
    local output
    output=$("$1/bin/aggdec" correct "$sentence")
    [[ $output == "$corrected" ]] || die "it says: $output"
}

remove_compilers() { # within the namespace only
    local folder file layers
    layers=$(mktemp -d)
    mount -t tmpfs layers "$layers"
    for folder in /usr/bin /usr/local/bin; do
        mkdir -p "$layers$folder"/{changed,work}
        mount -t overlay overlay -o "userxattr,lowerdir=$folder,upperdir=$layers$folder/changed,workdir=$layers$folder/work" "$folder"
        rm -f "$folder"/{,*-}{cc,gcc,g++,c++,clang,clang++,c89,c99,tcc}{,-[0-9]*}
    done
    for file in cc gcc g++ c++ clang "${CC:-cc}"; do
        ! command -v "$file" || die "$file can still be run"
    done
}

install_by_wheel() { # install_by_wheel PYTHON
    mkdir "$scratch/empty"
    cd "$scratch/empty"
    timed "a virtual environment" "$1" -m venv .venv
    timed "pip install WHEEL" .venv/bin/python -m pip install --no-compile --constraint "$root/scripts/constraints.txt" \
        "$root"/dist/*manylinux*.whl
    timed "aggdec correct" corrects .venv
    timed "aggdec correct, again" corrects .venv
    .venv/bin/aggdec --version
}

install_by_checkout() { # install_by_checkout PYTHON
    git clone --quiet "$root" "$scratch/checkout"
    cd "$scratch/checkout"
    timed "bash scripts/setup.sh" env PYTHON="$1" bash scripts/setup.sh
    timed "aggdec correct" corrects .venv
    .venv/bin/aggdec --version
}

prove() { # prove PYTHON: within the namespace
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    version=$("$1" --version)
    remove_compilers
    export PIP_FIND_LINKS="$downloads ${PIP_FIND_LINKS:-}" PIP_DISABLE_PIP_VERSION_CHECK=1
    (install_by_wheel "$1")
    (install_by_checkout "$1")
}

if [[ ${1:-} == --within ]]; then
    prove "$2"
    exit
fi
pythons=("$@")
if ((${#pythons[@]} == 0)); then
    for minor in 11 12; do
        for found in "$(command -v "python3.$minor" || true)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3."$minor".*/bin/python; do
            "$found" -c '' 2>/dev/null || continue
            pythons+=("$found")
            break
        done
    done
fi
PYTHON=${pythons[0]} bash scripts/wheel.sh # not one of an earlier checkout
for python in "${pythons[@]}"; do
    "$python" -m pip --quiet download --dest "$downloads" --constraint scripts/constraints.txt torch
    unshare --map-root-user --mount bash scripts/install_proof.sh --within "$python"
done
