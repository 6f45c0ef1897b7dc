"""Describes the machine, the libraries and the commit of a measurement, for the head of a report."""

import os
import platform
import subprocess
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import fairseq_aggdec
from fairseq_aggdec.engine.native.library import kernels
from fairseq_aggdec.installed import BUILDS, versions

_LIBRARIES = ("torch", *BUILDS, "numpy", "ctranslate2")


def machine() -> dict[str, Any]:
    """Processor, threads, the engine's kernels, GPU and library versions."""
    facts: dict[str, Any] = {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "system": f"{platform.system()} {platform.release()}",
        "kernels": "none" if kernels() is None else "compiled",
    }
    if torch.cuda.is_available():
        facts |= {"gpu": torch.cuda.get_device_name(), "cuda": torch.version.cuda}
    own = {
        "Python": platform.python_version(),
        "fairseq_aggdec": fairseq_aggdec.__version__,
    }
    return {**facts, "versions": {**own, **versions(*_LIBRARIES)}}


def describe(facts: dict[str, Any]) -> str:
    """One line of text for the facts of `machine`; missing ones are called unknown."""
    known = {
        name: facts.get(name, "unknown")
        for name in ("processor", "threads", "cores", "cuda")
    }
    libraries = ", ".join(
        f"{name} {version}" for name, version in facts.get("versions", {}).items()
    )
    gpu = f"{facts['gpu']} (CUDA {known['cuda']}), " if "gpu" in facts else ""
    text = f"{gpu}{known['processor']}, {known['threads']} threads of {known['cores']} cores; {libraries}"
    # a GPU needs no kernels; a record that is older than the kernels does not name them
    return (
        text
        if gpu or facts.get("kernels") == "compiled"
        else f"{text}; without this plugin's kernels"
    )


def commit() -> str | None:
    """The git commit of the package, with `-dirty` if files were changed; None where it is not known.

    The environment variable AGGDEC_COMMIT, of a copied checkout, replaces it: git may name another state there.
    """
    if named := os.environ.get("AGGDEC_COMMIT"):
        return named
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    folder = Path(fairseq_aggdec.__file__).parent
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def now() -> str:
    """Present date and time, UTC, in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


@dataclass
class Origin:
    """What was decoded, by which command, when and where: the first part of a record."""

    title: str
    """the test set and the model"""
    command: str
    date: str = field(default_factory=now)
    commit: str | None = field(default_factory=commit)
    machine: dict[str, Any] = field(default_factory=machine)
