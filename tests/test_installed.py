"""Which builds of fairseq and which kernels there are, and what is said of two builds at once."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from fairseq_aggdec import installed

OURS, OTHER = (
    ("ve-fairseq", "fairseq-fixed")
    if "ve-fairseq" in installed.versions(*installed.BUILDS)
    else ("fairseq-fixed", "ve-fairseq")
)
PLAIN_MACHINE = """
import platform, sys, torch
platform.machine = lambda: "aarch64"
torch.backends.cpu.get_cpu_capability = lambda: "DEFAULT"
from fairseq_aggdec.cli.verbs import main
main(sys.argv[1:])
"""
COMPILED = """
import platform
from distutils.core import run_setup
platform.machine = lambda: "aarch64"
print(run_setup("setup.py", stop_after="init").ext_modules)
"""


def test_two_builds_of_fairseq_are_named_once_with_the_command_that_leaves_the_required_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / f"{OTHER.replace('-', '_')}-9.9.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Name: {OTHER}\nVersion: 9.9\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    program = "import fairseq_aggdec as ours; ours.register(); ours.register()"
    command = f"pip install {OURS}=={version(OURS)}"
    for words in (["-m", "fairseq_aggdec.cli.verbs", "--version"], ["-c", program]):
        done = subprocess.run(
            [sys.executable, *words],
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        assert (
            done.stderr.count(f"uninstall --yes {' '.join(sorted((OURS, OTHER)))}") == 1
        )
        assert done.stderr.rstrip().endswith(command)


def test_the_version_names_the_build_of_fairseq_and_the_kernels_of_the_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGGDEC_KERNELS", raising=False)
    assert f"({OURS} {version(OURS)}, torch {version('torch')}; " in installed.about()
    cpuinfo = tmp_path / "cpuinfo"
    wanted = {
        "sse4_2": "none",
        "fma avx2": "avx2",
        "fma avx2 avx512f": "avx2",
        "fma avx2 avx512f avx512bw avx512dq avx512vl": "avx512",
    }
    for flags, name in wanted.items():
        cpuinfo.write_text(f"model name\t: a\nflags\t\t: {flags}\n", encoding="utf-8")
        # compiled or not
        assert installed.kernels(cpuinfo).startswith((name, "none, they were not"))
    monkeypatch.setenv("AGGDEC_KERNELS", "0")
    assert installed.kernels(cpuinfo) == "none, AGGDEC_KERNELS=0"


def test_a_machine_without_vector_instructions_corrects_and_compiles_nothing() -> None:
    words = ["correct", "She have two brother."]
    done = subprocess.run(
        [sys.executable, "-c", PLAIN_MACHINE, *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert (done.stdout, done.stderr) == ("She has two brothers.\n", "")
    root = Path(__file__).parents[1]
    compiled = subprocess.check_output(
        [sys.executable, "-c", COMPILED], text=True, cwd=root
    )
    assert compiled.splitlines()[-1] == "[]"
