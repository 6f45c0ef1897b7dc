"""Fixtures and rules that all tests share."""

import logging
import multiprocessing.util
import os
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.helpers import ToyModel, make_toy_data, train_toy
from tests.support.sharing import made_once

ROOT = Path(__file__).resolve().parents[1]


def pytest_configure(config: pytest.Config) -> None:
    """What comes before any test."""
    if getattr(config.option, "numprocesses", None):
        return  # of pytest-xdist's processes the one that hands out the tests
    # fairseq says while it is imported which packages it does not find
    logging.disable(logging.INFO)
    import torch

    import fairseq_aggdec

    fairseq_aggdec.register()  # whichever module a test imports first
    logging.disable(logging.NOTSET)
    # results and times alike on every machine
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))


SLOW = (
    # whole stages of experiments, and commands as users paste them: dozens of processes
    "tests/scripts/",
    "tests/repository/test_install.py",
    "tests/repository/test_readme.py::test_command_runs",
    "tests/repository/test_readme.py::test_the_trainings",
    "tests/cli/test_without_the_laboratory.py",
    "tests/cli/test_demo.py::test_the_script",
    "tests/train/test_two_processes.py",
    # trainings
    "tests/cli/test_train.py",
    "tests/cli/test_drafter_command.py",
    # families but for BART, and one that ends outputs by their language
    *(
        f"tests/cli/test_families.py::test_family[{name}"
        for name in ("WMT", "M2M", "NLLB", "mBART-50", "Indic", "IWSLT")
    ),
    *(
        f"tests/fuzzing/test_fuzzing.py::test_random_cases_decode_as_stock_fairseq_does[{n}]"
        for n in (40, 80, 120)
    ),
    # kernels for a GPU: interpreted in whole batches, and compiled
    "tests/engine/test_triton.py::test_compiled_kernels",
    "tests/engine/test_triton.py::test_interpreted_kernels_compute_what_pytorch_does[test_engine.py]",
    "tests/engine/test_triton.py::test_interpreted_kernels_compute_what_pytorch_does[test_loops.py]",
)
"""beginnings of the names of tests that only `scripts/test.sh --all` runs: together they take longer than all others"""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """What this processor cannot compute is left out, not skipped: a skipped test counts as a failure in `.ci/run`.

    Files of few and long tests come first: at the end, one process would work on them while the others wait.
    """
    from fairseq_aggdec.engine.native.library import kernels

    found = kernels()
    if found is None or not found.quantises:
        left_out = [item for item in items if item.get_closest_marker("int8")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("int8")]
    for item in items:
        if item.nodeid.startswith(SLOW):
            item.add_marker("slow")
    longest = (*SLOW, "tests/fuzzing", "tests/engine/test_triton", "tests/cli/")
    items.sort(
        key=lambda item: next(
            (place for place, part in enumerate(longest) if part in item.nodeid),
            len(longest),
        )
    )


_LOG_LEVELS = {
    name: logging.getLogger(name).level for name in (None, "fairseq", "fairseq_aggdec")
}


@pytest.fixture(autouse=True)
def _log_levels() -> None:
    """What a command that ran in this process, for another test or a fixture, has silenced speaks again."""
    ours = [
        name
        for name in logging.root.manager.loggerDict
        if name.startswith("fairseq_aggdec.")
    ]
    for name, level in (dict.fromkeys(ours, logging.NOTSET) | _LOG_LEVELS).items():
        logging.getLogger(name).setLevel(level)


@pytest.fixture(scope="session", autouse=True)
def _temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A temporary directory for this run and the commands that it starts; nothing may be left in it.

    With it goes what PyTorch's data workers leave when they are killed (pymp-*), and the folders of its compiler
    (torchinductor_*) and of a pytest that a test runs (pytest-of-*, tests-*).
    """
    tmp_path_factory.getbasetemp()  # which is kept for a while, and elsewhere
    multiprocessing.util.get_temp_dir()  # this process's, which goes when it ends
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory(prefix="tests-") as folder,
    ):
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", None)
        yield
        goes = ("pymp-", "torchinductor_", "pytest-of-", "tests-")
        left = [
            path.name
            for path in Path(folder).iterdir()
            if not path.name.startswith(goes)
        ]
        assert not left, f"left behind in the temporary directory: {left}"


def _data_required() -> bool:
    """Whether every data set must be there, so that a skipped test is a failure (set by `.ci/run`)."""
    return os.environ.get("AGGDEC_REQUIRE_DATA") == "1"


@pytest.fixture(scope="session")
def aggdec_data() -> Path:
    """The folder of the data sets: `AGGDEC_DATA`, else `../shared/data`; the test is skipped where there is none."""
    data = Path(os.environ.get("AGGDEC_DATA") or ROOT.parent / "shared" / "data")
    if not data.is_dir():
        reason = f"no data sets in {data}: set AGGDEC_DATA to their folder"
        if _data_required():
            pytest.fail(reason)
        pytest.skip(reason)
    return data


@pytest.fixture(scope="session")
def toy_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Binarised toy data with a joined dictionary; see `tests.support.helpers.make_toy_data`."""
    return made_once(tmp_path_factory, "toy_data", make_toy_data)


@pytest.fixture(scope="session")
def toy_model_dir(toy_data: Path, tmp_path_factory: pytest.TempPathFactory) -> ToyModel:
    """A small stock fairseq Transformer, trained for a few updates by fairseq-train, with its data."""
    return made_once(
        tmp_path_factory, "toy_model", partial(train_toy, toy_data, updates=20)
    )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run if a test was skipped although all data sets are required."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return
    skipped = reporter.stats.get("skipped", [])
    if skipped and _data_required() and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter.write_line(
            f"\nAGGDEC_REQUIRE_DATA=1: {len(skipped)} skipped tests count as failures",
            red=True,
        )


@pytest.fixture
def no_gradients() -> Iterator[None]:
    """As in decoding."""
    import torch

    with torch.no_grad():
        yield


@pytest.fixture(params=["kernels", "PyTorch"])
def either_engine(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test with the kernels, and with PyTorch's operations in their place."""
    from fairseq_aggdec.engine.native import library
    from fairseq_aggdec.engine.native.library import kernels

    assert kernels() is not None, "not compiled: bash scripts/setup.sh"
    if request.param == "PyTorch":
        monkeypatch.setattr(library, "kernels", lambda: None)
