"""The commands of the README and of the pages that users run commands from; what else they say: test_docs.py."""

import os
import re
import runpy
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.support.helpers import ToyModel

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / name
    for name in (
        "README.md",
        "docs/options.md",
        "docs/training.md",
        "docs/measurements.md",
    )
]
"""those whose commands are run"""
ELSEWHERE = {
    # tests/cli/test_verify.py, 3 sentences
    "aggdec verify $DATA_BIN --path $CHECKPOINT",
    # tests/cli/test_drafter_command.py, few updates
    "aggdec drafter --verifier $CHECKPOINT --data $DATA_BIN --out drafter --minutes 30",
    "aggdec serve",  # tests/serve
    # tests/hub/test_hub_task.py, with the lines that it prints
    "aggdec import-hf $HF_MODEL --out model",
    'aggdec translate --model model "Where do you live?"',  # tests/hub/test_hub_task.py
    # tests/cli/test_demo.py; every installed command of the tests
    "bash scripts/demo.sh && source .venv/bin/activate",
    # tests/scripts/test_pipeline.py, on less data, and with fewer updates of scripts/train.sh
    "bash scripts/reproduce.sh gec_small prepare",
    "bash scripts/reproduce.sh gec_small train",
    "bash scripts/decode.sh gec_small --decoding iad --subset test",
    "bash scripts/reproduce.sh gec_small score",
    "bash scripts/reproduce.sh tatoeba_en_de",
    "bash scripts/reproduce.sh --list",  # tests/configs/test_stages.py
}
"""commands that other tests run"""


TEXTS = {
    'aggdec correct --diff "She have two brother."': "She [-have-]{+has+} two [-brother-]{+brothers+}.",
    'aggdec translate "Where do you live?"': "Wo wohnt ihr?",
}
"""commands for text, and what they print"""


def blocks(language: str) -> list[str]:
    """The fenced code blocks of one language."""
    text = "".join(page.read_text("utf-8") for page in PAGES)
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def commands() -> list[str]:
    """Shell commands, continuation lines joined, comments and spacing removed."""
    lines = "".join(blocks("bash")).replace("\\\n", " ").splitlines()
    return [
        re.sub(r"\s+", " ", re.sub(r"\s#.*", "", line)).strip()
        for line in lines
        if line.strip()
    ]


TRAINING = [
    line for line in commands() if line.startswith(("aggdec distill", "fairseq-train"))
]
FIRST, *RUN = [
    line for line in commands() if line not in [*ELSEWHERE, *TEXTS, *TRAINING]
]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository's root as a user sees it, where commands may leave files."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("fairseq_aggdec", "scripts", "configs"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def run(
    command: str, checkout: Path, names: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command in a shell.

    Args:
        command: as a user pastes it.
        checkout: the working folder.
        names: what `$DATA_BIN` and the like stand for.
    """
    path = sysconfig.get_path("scripts")
    environment = {
        **os.environ,
        **names,
        "PATH": f"{path}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done


@pytest.fixture(scope="module")
def names(checkout: Path, toy_model_dir: ToyModel) -> dict[str, str]:
    """The variables of the commands: the toy model, and a drafter where it is to be trained."""
    drafter = checkout / "drafter/checkpoint_best.pt"
    small = checkout / "small/checkpoint_best.pt"
    paths = {
        "DATA_BIN": toy_model_dir.data,
        "CHECKPOINT": toy_model_dir.checkpoint,
        "DRAFTER": drafter,
        "SMALL": small,
    }
    return {name: str(path) for name, path in paths.items()}


@pytest.fixture(scope="module")
def drafter(checkout: Path, names: dict[str, str]) -> Path:
    """What the commands for training leave behind, in fewer updates."""
    for command in TRAINING:
        command = re.sub(r"(--max-update|--warmup-updates) \d+", r"\1 2", command)
        run(command, checkout, names)
    return checkout


def test_the_first_command_runs_as_it_was_installed(
    checkout: Path, names: dict[str, str]
) -> None:
    done = run(FIRST, checkout, names)
    assert "H-0\t" in done.stdout
    assert "--decoding iad: " in done.stdout + done.stderr
    assert (checkout / "stats.jsonl").is_file()


@pytest.mark.parametrize("command", RUN)
def test_command_runs(
    command: str, checkout: Path, names: dict[str, str], request: pytest.FixtureRequest
) -> None:
    if "--drafter-path" in command:
        request.getfixturevalue("drafter")
    done = run(command, checkout, names)
    assert "H-0\t" in done.stdout
    (decoding,) = re.findall(r"--decoding \S+", command)
    assert f"{decoding}: " in done.stdout + done.stderr
    assert ("$SMALL" in command) == (
        "small/checkpoint_best.pt shares the verifier's encoder" in done.stderr
    )
    if " | " in command:  # the shipped corrector
        assert "The student’s book is on the table." in done.stdout


@pytest.mark.parametrize("command", TEXTS)
def test_text_comes_out(command: str, checkout: Path) -> None:
    assert command in commands()
    assert run(command, checkout, {}).stdout == f"{TEXTS[command]}\n"


def test_the_trainings_of_the_docs_leave_a_drafter_and_heads(drafter: Path) -> None:
    assert (drafter / "drafter/checkpoint_best.pt").is_file()
    assert (drafter / "heads/checkpoint_best.pt").is_file()


def test_commands_run_elsewhere_are_in_the_docs() -> None:
    assert set(commands()) >= ELSEWHERE


@pytest.mark.parametrize(
    "program", [block for block in blocks("python") if "from .my_task" not in block]
)
def test_program_runs(
    program: str,
    checkout: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (checkout / "program.py").write_text(program, "utf-8")
    monkeypatch.chdir(checkout)
    runpy.run_path("program.py")
    assert "brother" in capsys.readouterr().out
