"""Which folder imports which: docs/developing.md says so."""

import ast
import re
from pathlib import Path

import pytest

import fairseq_aggdec

PACKAGE = Path(fairseq_aggdec.__file__).parent
ROOT = {"errors", "files", "structured_files"}
KNOWS: dict[str, set[str]] = {
    "decoding": set(),
    "scheduling": {"decoding"},  # names of types
    "text": set(),
    "compat": set(),
    "data": {"text"},
    "models": {"compat", "decoding"},
    "criterions": {"models", "decoding"},
    "engine": {"decoding", "models"},
    "generation": {"compat", "decoding", "engine", "models", "scheduling"},
    "tasks": {"compat", "criterions", "decoding", "engine", "generation", "models", "text"},
    "model": {"compat", "generation", "models", "tasks", "text"},
    "bulk": {"tasks", "text", "model"},
    "train": {"compat", "bulk", "tasks"},
    "serve": {"text", "model"},
}
"""folder, or the file model.py: others that it may import; `lab`, `demo` and `cli` may import all"""


def imported(path: Path) -> set[str]:
    """The first part below the package of all that a file imports from it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fairseq_aggdec":
            parts = (node.module or "").split(".")[1:2]
            names |= set(parts) if parts else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("fairseq_aggdec.")}
    return {name for name in names if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()}


@pytest.mark.parametrize("folder", KNOWS)
def test_a_folder_imports_only_what_it_may_know(folder: str) -> None:
    allowed = {folder, *ROOT, *KNOWS[folder]}
    files = [*(PACKAGE / folder).rglob("*.py"), *PACKAGE.glob(f"{folder}.py")]
    assert files
    found = {(str(file.relative_to(PACKAGE)), name) for file in files for name in imported(file)}
    assert {(file, name) for file, name in found if name not in allowed} == set()


def test_the_root_knows_no_folder_and_no_import_is_relative() -> None:
    for name in ROOT:
        assert imported(PACKAGE / f"{name}.py") <= {*ROOT}, name
    for file in PACKAGE.rglob("*.py"):
        nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        assert not any(isinstance(node, ast.ImportFrom) and node.level > 0 for node in nodes), file


def test_every_folder_is_named_and_the_arrows_have_no_circle() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    assert {*folders, "model"} == {*KNOWS, "lab", "demo", "cli"}
    left = {folder: set(others) for folder, others in KNOWS.items()}
    while left:
        free = {folder for folder, others in left.items() if not others & left.keys()}
        assert free, f"a circle among {sorted(left)}"
        left = {folder: others for folder, others in left.items() if folder not in free}


def test_decoding_and_scheduling_need_neither_fairseq_nor_more() -> None:
    for folder, libraries in (("decoding", {"torch"}), ("scheduling", set())):
        for file in (PACKAGE / folder).rglob("*.py"):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
            names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
            assert {name.split(".")[0] for name in names} & {"fairseq", "torch", "numpy"} <= libraries, file


def test_no_test_file_imports_another() -> None:
    """What several need is in tests/support, or in a file of its own beside them."""
    tests = Path(__file__).parents[1]
    imports = re.compile(r"^(?:from|import) tests\.(?:\w+\.)*test_", re.MULTILINE)
    found = {str(path.relative_to(tests)) for path in tests.rglob("*.py") if imports.search(path.read_text("utf-8"))}
    assert found <= {"cli_integration/test_families.py", "lab/reporting/test_tables.py", "lab/score/test_m2_score.py"}


def test_one_file_asks_for_the_device() -> None:
    """Of what decodes. `engine/cuda` and `engine/graphs` hold what that file has chosen for a GPU."""
    asks = re.compile(r"\bis_cuda\b|\bis_cpu\b|device\.type\s*(?:==|!=|in\b)|cuda\.is_available")
    found = {
        str(file.relative_to(PACKAGE))
        for folder in ("decoding", "scheduling", "generation", "engine")
        for file in (PACKAGE / folder).rglob("*.py")
        if not {"cuda", "graphs"} & set(file.parts) and asks.search(file.read_text(encoding="utf-8"))
    }
    assert found == {"engine/choose_backend.py"}
