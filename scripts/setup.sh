#!/usr/bin/env bash
# Make .venv in the repository root with the plugin (editable) and its tested versions. Quick when nothing has changed.
# usage: bash scripts/setup.sh [--compile]      no compiler is needed where fairseq has a wheel: x86_64 Linux
#   --compile    fairseq is compiled instead of its wheel installed, three minutes more: for `--base-layers`, whose part of the
#                wheels is older than this PyTorch. Machines without a wheel (all but x86_64 Linux) compile it anyway.
#   PYTHON=/path/to/python3.12 chooses the Python (3.11 or 3.12), AGGDEC_VENV=FOLDER another folder than .venv
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

venv=${AGGDEC_VENV:-.venv}
stamp=$venv/.setup-done            # holds the fingerprint of what was installed
compiled=$venv/.setup-compiled     # exists where fairseq was compiled
unfinished=$venv/.setup-unfinished # exists while an installation runs, and after one that was killed

die() {
    printf 'setup: %s\n' "$@" >&2
    exit 1
}

say() { printf 'setup: %s\n' "$*" >&2; }

python_version() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }

supported() { [[ $1 == 3.11 || $1 == 3.12 ]]; }

# Changes with the requirements, this script, the versions, the folder (console scripts name it) and the venv's Python.
fingerprint() {
    {
        cat setup.py pyproject.toml scripts/constraints.txt scripts/setup.sh fairseq_aggdec/engine/native/*.c
        pwd
        readlink -f "$venv/bin/python" 2>/dev/null || true
        python_version "$venv/bin/python" || true
    } | cksum
}

is_ready() {
    [[ -f $stamp && ! -e $unfinished ]] || return 1
    [[ -z $compiles || -e $compiled ]] || return 1
    [[ $(<"$stamp") == "$(fingerprint)" ]] || return 1
    [[ -z ${PYTHON:-} || $(python_version "$PYTHON") == "$(python_version "$venv/bin/python")" ]]
}

find_python() {
    local candidate version found=() candidates=(python3.12 python3.11 python3 python)
    [[ -z ${PYTHON:-} ]] || candidates=("$PYTHON")
    for candidate in "${candidates[@]}"; do
        version=$(python_version "$candidate") || continue
        if supported "$version"; then
            printf '%s\n' "$candidate"
            return
        fi
        found+=("$candidate is $version")
    done
    die "Python 3.11 or 3.12 is needed; found: $(IFS=,; echo "${found[*]:-none}")" \
        "install one of them, or name it: PYTHON=/path/to/python3.12 bash scripts/setup.sh"
}

make_venv() {
    local python=$1
    say "making $venv with Python $(python_version "$python")"
    touch "$unfinished" # not by `venv --clear`, which would take it away
    find "$venv" -mindepth 1 -maxdepth 1 ! -path "$unfinished" -exec rm -rf {} +
    "$python" -m venv "$venv" ||
        die "'$python -m venv' failed (its message is above); on Debian and Ubuntu: apt install python3-venv"
}

pip_install() {
    local what=$1 progress=--progress-bar=off # pip's steps are lines in a file, too
    shift
    say "installing $what"
    [[ ! -t 2 ]] || progress=
    # --no-compile: of a hundred packages' modules a tenth is ever imported, and Python keeps what it compiles then
    "$venv/bin/python" -m pip install $progress --no-compile --disable-pip-version-check \
        --constraint scripts/constraints.txt "$@" ||
        die "could not install $what: pip's message is above." \
            "Is the network, or the package index that pip is configured for, within reach? Run this again afterwards."
}

check_compiler() {
    local header
    header=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h
    command -v "${CXX:-c++}" >/dev/null && [[ -f $header ]] ||
        die "fairseq is compiled during installation: a C++ compiler and Python's headers are needed ($header)" \
            "on Debian and Ubuntu: apt install build-essential python3-dev"
}

# Two builds of fairseq have the same files: with the first that is removed the other loses them, and so all are.
remove_other_fairseq() {
    local wanted=fairseq_fixed found names=() other=
    [[ -n $compiles || $(python_version "$venv/bin/python") != 3.11 ]] || wanted=ve_fairseq
    [[ -z $compiles || -e $compiled ]] || other=yes # its wheel
    for found in "$venv"/lib/python*/site-packages/{fairseq,fairseq_fixed,ve_fairseq}-*.dist-info; do
        [[ -e $found ]] || continue
        found=${found##*/}
        names+=("${found%%-*}")
        [[ ${found%%-*} == "$wanted" ]] || other=yes
    done
    [[ -z $other ]] || ((${#names[@]} == 0)) || "$venv/bin/python" -m pip uninstall --yes --quiet "${names[@]}"
}

compiles=
case "$*" in
    "") ;;
    --compile) compiles=yes ;;
    *) die "$*: there is no such option; usage: bash scripts/setup.sh [--compile]" ;;
esac
[[ ! -e $compiled && $(uname -sm) == "Linux x86_64" ]] || compiles=yes

is_ready && exit 0

[[ $PWD != *[\"$'\n']* ]] || die "$PWD: pip's commands do not work in a folder whose name holds a quotation mark or a line break"
mkdir -p "$venv" 2>/dev/null && [[ -w $venv && -w . ]] ||
    die "$venv or $PWD cannot be written to: run this as their owner; another folder is AGGDEC_VENV=FOLDER bash scripts/setup.sh"
if command -v flock >/dev/null; then # of two at once for one folder, the second waits and has nothing to do
    exec 9<"$venv"
    flock 9
    is_ready && exit 0
fi

say "about $([[ -n $compiles ]] && echo four minutes || echo a minute) on two cores, and the download of PyTorch"
if [[ -e $unfinished ]] || ! supported "$(python_version "$venv/bin/python" || true)" ||
    [[ -n ${PYTHON:-} && $(python_version "$PYTHON" || true) != "$(python_version "$venv/bin/python")" ]]; then
    python=$(find_python)
    make_venv "$python"
fi
[[ -z $compiles ]] || check_compiler
touch "$unfinished"
rm -f "$stamp"
remove_other_fairseq
if [[ -n $compiles ]]; then
    # without pip's isolation, which would download a second PyTorch to compile with
    pip_install "PyTorch (the largest download)" torch setuptools wheel cython numpy
    AGGDEC_COMPILE=fairseq pip_install "fairseq (compiles for about two minutes), the plugin and its tools" \
        --no-build-isolation --no-binary fairseq-fixed --editable '.[dev,lab]'
    touch "$compiled"
else
    command -v "${CC:-cc}" >/dev/null ||
        say "no C compiler: without this plugin's kernels PyTorch's operations compute, more slowly (docs/engine.md#kernels)"
    pip_install "what builds the plugin" setuptools
    pip_install "PyTorch, fairseq, the plugin and its tools" --no-build-isolation --editable '.[dev,lab]'
fi

PYTHONDONTWRITEBYTECODE= "$venv/bin/python" -c 'import torch, fairseq.tasks, fairseq_aggdec' >/dev/null 2>"$unfinished" ||
    die "installed, but it does not import:" "$(<"$unfinished")"
fingerprint >"$stamp"
rm -f "$unfinished"
say "done: source $venv/bin/activate"
