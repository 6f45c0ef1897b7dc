"""What is installed beside this plugin: fairseq's builds, PyTorch, and the kernels of this processor."""

import logging
import os
from functools import cache
from importlib import metadata
from pathlib import Path

import fairseq_aggdec

logger = logging.getLogger(__name__)

BUILDS = ("fairseq", "fairseq-fixed", "ve-fairseq")
"""distributions that are imported as `fairseq`"""
_VECTORS = {
    "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl", "fma"},
    "avx2": {"avx2", "fma"},
}
"""{kernels: the processor's flags that PyTorch asks for}, the best first"""


def versions(*names: str) -> dict[str, str]:
    """{distribution: its version}, of those that are installed."""
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


@cache  # one warning in a process
def warn_of_two_fairseqs() -> None:
    """Name the builds of fairseq that are installed at once, and the command that leaves the required one."""
    found = versions(*BUILDS)
    if len(found) < 2:
        return
    from packaging.requirements import Requirement

    # a checkout need not be installed
    lines = metadata.requires("fairseq-aggdec") if versions("fairseq-aggdec") else []
    wanted = [f"{name}=={version}" for name, version in found.items()]
    wanted += [
        f"{one.name}{one.specifier}"
        for one in map(Requirement, lines or [])
        if one.name in BUILDS
        and (one.marker is None or one.marker.evaluate({"extra": ""}))
    ]
    logger.warning(
        f"{' and '.join(found)} are installed at once, with files of the same names: what was installed last is used, "
        "and removing one spoils the other. This leaves one: "
        f"pip uninstall --yes {' '.join(found)} && pip install {wanted[-1]}"
    )


def about() -> str:
    """A line for `aggdec --version`; imports neither PyTorch nor fairseq."""
    found = versions(*BUILDS, "torch")
    libraries = ", ".join(f"{name} {version}" for name, version in found.items())
    return f"aggdec {fairseq_aggdec.__version__} ({libraries}; kernels: {kernels()})"


def kernels(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The name of the kernels that decode on this CPU, or `none` and why."""
    if os.environ.get("AGGDEC_KERNELS") == "0":
        return "none, AGGDEC_KERNELS=0"
    text = cpuinfo.read_text(encoding="utf-8") if cpuinfo.exists() else ""
    flags = set(text.partition("\nflags")[2].partition("\n")[0].split())
    fitting = [name for name, needed in _VECTORS.items() if needed <= flags]
    if not fitting:
        return "none, they need a processor with AVX2 and Linux"
    [name, *_] = fitting
    file = Path(__file__).parent / f"engine/native/kernels_{name}.so"
    return name if file.exists() else "none, they were not compiled"
