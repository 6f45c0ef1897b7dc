"""Installation: the wheel, `--user-dir` from everywhere, and `scripts/setup.sh` where something is missing."""

import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.helpers import ToyModel, parse_generate, run_cli

ROOT = Path(__file__).resolve().parents[2]
HAS_KERNELS = (
    sys.platform == "linux"
    and platform.machine() == "x86_64"
    and shutil.which("cc") is not None
)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is installed, so that the checkout stays clean."""
    copy = tmp_path_factory.mktemp("source")
    for name in ("setup.py", "pyproject.toml", "LICENSE", "README.md"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, copy)
    shutil.copytree(
        ROOT / "fairseq_aggdec",
        copy / "fairseq_aggdec",
        ignore=shutil.ignore_patterns("__pycache__", "*.so"),
    )
    return copy


def build(copy: Path, out: str, **environment: str) -> Path:
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "wheel",
        "--quiet",
        "--no-deps",
    ]
    subprocess.run(
        [*pip, "--no-build-isolation", "--wheel-dir", copy / out, copy],
        check=True,
        timeout=120,
        env={**os.environ, **environment},
    )
    (built,) = (copy / out).glob("*.whl")
    return built


@pytest.fixture(scope="module")
def plain_wheel(copy: Path) -> Path:
    """The wheel without kernels."""
    return build(copy, "plain", AGGDEC_COMPILE="0")


@pytest.fixture(scope="module")
def wheel(copy: Path, plain_wheel: Path) -> Path:
    """The wheel that `pip install .` would install, made after the other, whose folder it shares."""
    return build(copy, "dist")


def test_wheel_holds_everything_that_is_needed(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    package = ROOT / "fairseq_aggdec"
    folders = (package / "demo",)
    wanted = [
        *package.rglob("*.py"),
        package / "py.typed",
        *(file for folder in folders for file in folder.rglob("*")),
    ]
    expected = {
        str(f.relative_to(ROOT))
        for f in wanted
        if f.is_file() and "__pycache__" not in f.parts
    }
    assert expected <= names
    assert not [
        name for name in names if name.startswith(("tests/", "scripts/", "configs/"))
    ]


def test_the_wheel_says_what_it_is_tested_on_and_under_which_licences_it_and_its_models_are(
    wheel: Path,
) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (about,) = (
            archive.read(name).decode()
            for name in archive.namelist()
            if name.endswith(".dist-info/METADATA")
        )
    models = [
        f"License-File: fairseq_aggdec/demo/{name}/README.md" for name in ("gec", "mt")
    ]
    tested = [
        f"Classifier: Programming Language :: Python :: 3.{minor}" for minor in (11, 12)
    ]
    known = [
        "Author: fairseq_aggdec contributors",
        "License: MIT",
        "License-File: LICENSE",
        "Requires-Python: >=3.11",
    ]
    assert {*models, *tested, *known} <= {*about.splitlines()}


@pytest.mark.skipif(not HAS_KERNELS, reason="needs a C compiler on x86_64 Linux")
def test_a_wheel_is_for_every_python_and_of_one_platform_only_with_kernels_which_run_on_glibc_2_28(
    wheel: Path, plain_wheel: Path
) -> None:
    assert wheel.name.endswith("-py3-none-linux_x86_64.whl")
    with zipfile.ZipFile(wheel) as archive:
        kernels = [name for name in archive.namelist() if name.endswith(".so")]
        assert len(kernels) == 2
        for name in kernels:
            needed = re.findall(rb"GLIBC_2\.(\d+)", archive.read(name))
            assert max(map(int, needed)) <= 28
    assert plain_wheel.name.endswith("-py3-none-any.whl")
    names = zipfile.ZipFile(plain_wheel).namelist()
    assert not [name for name in names if name.endswith(".so")]


def test_one_fairseq_is_required_everywhere_and_by_a_wheel_where_there_is_one() -> None:
    required = [
        Requirement(line) for line in distribution("fairseq-aggdec").requires or []
    ]

    def fairseq(python: str, system: str, machine: str) -> list[str]:
        place = {
            "python_version": python,
            "sys_platform": system,
            "platform_machine": machine,
            "extra": "",
        }
        return [
            one.name
            for one in required
            if "fairseq" in one.name and (not one.marker or one.marker.evaluate(place))
        ]

    for python in ("3.11", "3.12"):
        for system, machine in (("linux", "aarch64"), ("darwin", "x86_64")):
            assert fairseq(python, system, machine) == ["fairseq-fixed"]
    assert fairseq("3.11", "linux", "x86_64") == ["ve-fairseq"]
    assert fairseq("3.12", "linux", "x86_64") == ["fairseq-fixed"]


def test_every_requirement_is_pinned() -> None:
    lines = (
        (ROOT / "scripts" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    )
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in lines
        if not line.startswith("#")
    }
    required = distribution("fairseq-aggdec").requires or []
    for requirement in required:
        name = re.split(r"[\[;=<>!~ ]", requirement)[0].lower()
        assert name in pinned, requirement
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "build-system"
    ]["requires"]
    assert {name.split(">")[0] for name in build} <= pinned


def test_site_packages_install_beside_a_checkout(
    wheel: Path,
    toy_model_dir: ToyModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An installed copy and a checkout of the same name: whichever `--user-dir` names, with a slash, is used."""
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    program = "import sys; from fairseq_cli.generate import cli_main; cli_main(); print(sys.modules['fairseq_aggdec'])"
    options = [
        "--task",
        "aggressive_translation",
        "--path",
        toy_model_dir.checkpoint,
        "--cpu",
    ]
    options += ["--beam", "1", "--gen-subset", "valid", "--max-len-b", "5"]
    monkeypatch.setenv("PYTHONPATH", str(site))
    for used in (ROOT, site):
        folder = used / "fairseq_aggdec"
        done = run_cli(
            "python",
            "-c",
            program,
            toy_model_dir.data,
            "--user-dir",
            f"{folder}/",
            *options,
            own_process=True,
            cwd=tmp_path,
        )
        assert len(parse_generate(done.stdout)) == 15
        assert f"from '{folder}" in done.stdout.splitlines()[-1]


class TestSetup:
    """`scripts/setup.sh` in a copy of the repository, with a venv whose pip does what the test needs."""

    @pytest.fixture
    def copy(self, tmp_path: Path) -> Path:
        copy = tmp_path / "a checkout"  # with a space
        (copy / "scripts").mkdir(parents=True)
        native = "fairseq_aggdec/engine/native"
        (copy / native).mkdir(parents=True)
        sources = [f"{native}/{name}" for name in ("kernels.c", "beams.c")]
        for name in (
            "setup.py",
            "pyproject.toml",
            "scripts/setup.sh",
            "scripts/constraints.txt",
            *sources,
        ):
            shutil.copy(ROOT / name, copy / name)
        return copy

    @staticmethod
    def setup(
        copy: Path, *options: str, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        line = ["bash", str(copy / "scripts" / "setup.sh"), *options]
        environment = {**os.environ, **environment}
        return subprocess.run(
            line,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            start_new_session=True,
        )

    @staticmethod
    def fake_pip(copy: Path, exit_code: int) -> None:
        """A venv in which pip only records its arguments, and the final check of imports passes."""
        site = next((copy / ".venv").glob("lib/python3*/site-packages"))
        shutil.rmtree(site / "pip", ignore_errors=True)
        record = f"import sys; open({str(copy / 'pip.log')!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')"
        for name in ("torch", "fairseq", "fairseq/tasks", "fairseq_aggdec", "pip"):
            (site / name).mkdir(exist_ok=True)
            (site / name / "__init__.py").touch()
        (site / "pip" / "__main__.py").write_text(
            f"{record}; sys.exit({exit_code})\n", encoding="utf-8"
        )

    def test_second_run_is_quick_and_a_change_is_noticed(self, copy: Path) -> None:
        venv.create(copy / ".venv", with_pip=False, symlinks=True)
        self.fake_pip(copy, exit_code=0)
        done = self.setup(copy)
        assert done.returncode == 0, done.stderr
        calls = (copy / "pip.log").read_text(encoding="utf-8").splitlines()
        assert len(calls) == 2, "what builds the plugin, then all at once"
        assert all("--constraint scripts/constraints.txt" in call for call in calls)
        assert all(
            "--progress-bar=off" in call and "--quiet" not in call for call in calls
        ), "stderr is a file here"
        assert done.stderr.startswith("setup: about a minute")
        assert "--no-build-isolation --editable .[dev,lab]" in calls[1]
        assert self.setup(copy).stderr == ""
        assert len((copy / "pip.log").read_text(encoding="utf-8").splitlines()) == 2, (
            "nothing installed again"
        )
        with (copy / "scripts" / "constraints.txt").open(
            "a", encoding="utf-8"
        ) as constraints:
            constraints.write("# changed\n")
        assert "installing" in self.setup(copy).stderr

    def test_another_fairseq_is_removed_before_one_is_installed_or_compiled(
        self, copy: Path
    ) -> None:
        venv.create(copy / ".venv", with_pip=False, symlinks=True)
        self.fake_pip(copy, exit_code=0)
        (site,) = (copy / ".venv").glob("lib/python3*/site-packages")
        other = "fairseq_fixed" if sys.version_info[:2] == (3, 11) else "ve_fairseq"
        (site / f"{other}-0.12.3.dist-info").mkdir()
        assert self.setup(copy).returncode == 0
        removal, *_ = (copy / "pip.log").read_text(encoding="utf-8").splitlines()
        assert removal.startswith("uninstall")
        assert removal.endswith(other)

        (copy / "pip.log").unlink()
        (site / f"{other}-0.12.3.dist-info").rmdir()
        (site / "fairseq_fixed-0.12.3.1.dist-info").mkdir(exist_ok=True)
        done = self.setup(copy, "--compile")
        assert done.returncode == 0, done.stderr
        calls = (copy / "pip.log").read_text(encoding="utf-8").splitlines()
        removal, torch, compiled = calls
        assert removal.startswith("uninstall"), "the wheel of the same build"
        assert "torch" in torch.split(), "torch first: fairseq compiles with it"
        assert "--no-binary fairseq-fixed" in compiled
        assert self.setup(copy).stderr == "", "a compiled fairseq is left as it is"

    def test_a_folder_that_cannot_be_written_is_one_clear_line(
        self, copy: Path
    ) -> None:
        done = self.setup(copy, AGGDEC_VENV="/proc/environment")
        assert done.returncode == 1
        (line,) = done.stderr.splitlines()
        assert "/proc/environment" in line
        assert "cannot be written" in line
        assert "AGGDEC_VENV=FOLDER" in line

    def test_failure_is_readable_and_not_taken_for_done(self, copy: Path) -> None:
        venv.create(copy / ".venv", with_pip=False, symlinks=True)
        self.fake_pip(copy, exit_code=1)
        done = self.setup(copy)
        assert done.returncode == 1
        assert "could not install what builds the plugin" in done.stderr
        assert "network" in done.stderr
        assert not (copy / ".venv" / ".setup-done").exists()
