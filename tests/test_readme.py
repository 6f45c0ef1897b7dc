"""Every command of the README runs."""

import os
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.helpers import TINY_TRANSFORMER, ToyModel

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ELSEWHERE = {
    "bash scripts/test.sh": "this very run",
    "bash scripts/demo.sh": "tests/cli/test_demo.py",
    "bash scripts/demo.sh --task mt": "tests/cli/test_demo.py",
    "bash scripts/prepare.sh gec_small": "tests/scripts/test_pipeline.py, on less data",
    "bash scripts/train.sh gec_small": "tests/scripts/test_pipeline.py, fewer updates",
    "bash scripts/average.sh gec_small": "tests/scripts/test_pipeline.py",
    "bash scripts/decode.sh gec_small --decoding iad --subset test": "tests/scripts/test_pipeline.py",
    "bash scripts/score.sh gec_small": "tests/scripts/test_pipeline.py",
    "bash scripts/reproduce.sh tatoeba_en_de": "tests/scripts/test_pipeline.py, on less data",
    "bash scripts/reproduce.sh --list": "tests/cli/test_experiments.py",
}


def blocks(language: str) -> list[str]:
    """The fenced code blocks of one language."""
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def commands() -> list[str]:
    """Shell commands, continuation lines joined, comments and spacing removed."""
    lines = "".join(blocks("bash")).replace("\\\n", " ").splitlines()
    return [re.sub(r"\s+", " ", re.sub(r"\s#.*", "", line)).strip() for line in lines if line.strip()]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository's root as a user sees it, where commands may leave files."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("fairseq_aggdec", "scripts", "configs"):
        (folder / name).symlink_to(ROOT / name)
    return folder


TRAINING = [command for command in commands() if command.startswith(("aggdec-distill", "fairseq-train"))]


def run(command: str, checkout: Path, toy: ToyModel, drafter: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PATH": sysconfig.get_path("scripts") + os.pathsep + os.environ["PATH"],
        "DATA_BIN": str(toy.data),
        "CHECKPOINT": str(toy.checkpoint),
        "DRAFTER": str(drafter),
    }
    return subprocess.run(
        ["bash", "-c", command], cwd=checkout, env=environment, capture_output=True, text=True, timeout=300
    )


@pytest.fixture(scope="module")
def drafter(checkout: Path, toy_model_dir: ToyModel) -> Path:
    """What the README's commands for training one make, in the size of the toy model and in fewer updates."""
    for command in TRAINING:
        sizes = " ".join(TINY_TRANSFORMER).removeprefix("--arch transformer")
        command = command.replace("--arch nar_drafter", f"--arch nar_drafter {sizes}")
        command = re.sub(r"(--max-update|--warmup-updates) \d+", r"\1 2", command)
        done = run(command, checkout, toy_model_dir)
        assert done.returncode == 0, done.stderr[-3000:]
    return checkout / "drafter" / "checkpoint_best.pt"


@pytest.mark.parametrize("command", [command for command in commands() if command not in [*ELSEWHERE, *TRAINING]])
def test_command_runs(command: str, checkout: Path, toy_model_dir: ToyModel, request: pytest.FixtureRequest) -> None:
    needed = request.getfixturevalue("drafter") if "$DRAFTER" in command else None
    done = run(command, checkout, toy_model_dir, needed)
    assert done.returncode == 0, done.stderr[-3000:]
    if command.startswith("aggdec-verify"):
        assert "passed: no lossless mode differs" in done.stdout
        return
    assert "H-0\t" in done.stdout
    decoding = re.search(r"--decoding (\S+)", command)
    assert decoding
    assert f"{decoding[0]}: " in done.stdout + done.stderr


def test_the_drafter_of_the_readme_is_trained(drafter: Path) -> None:
    assert TRAINING
    assert drafter.is_file()


def test_commands_run_elsewhere_are_in_the_readme_and_in_their_tests() -> None:
    assert set(ELSEWHERE) <= set(commands())
    pipeline = (ROOT / "tests" / "scripts" / "test_pipeline.py").read_text(encoding="utf-8")
    for stage in ("prepare", "train", "average", "decode", "score", "reproduce"):
        assert f"{stage}.sh" in pipeline or f'"{stage}"' in pipeline


@pytest.mark.parametrize("program", blocks("python"))
def test_program_runs(program: str, checkout: Path, toy_model_dir: ToyModel) -> None:
    (checkout / "program.py").write_text(program, encoding="utf-8")
    done = run("python program.py", checkout, toy_model_dir)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "brother" in done.stdout


def test_named_files_exist() -> None:
    for path in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / path).exists(), f"the README links to {path}"
