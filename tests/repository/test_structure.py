"""Which folder imports which: docs/CONTRIBUTING.md says so."""

import ast
import re
from pathlib import Path

import pytest

import fairseq_aggdec
from fairseq_aggdec.generation import modes

PACKAGE = Path(fairseq_aggdec.__file__).parent
ROOT = {"checkout", "errors", "files", "process", "progress", "structured_files"}
KNOWS: dict[str, set[str]] = {
    "decoding": set(),
    "scheduling": {"decoding"},  # names of types
    "text": {"hub"},
    "demo": {"generation", "text"},
    "compat": set(),
    "models": {"compat", "decoding"},
    "hub": {"compat", "generation", "models"},
    "criterions": {"models", "decoding"},
    "engine": {"compat", "decoding", "models", "scheduling"},
    "generation": {"compat", "decoding", "engine", "models", "scheduling"},
    "tasks": {
        "compat",
        "criterions",
        "decoding",
        "engine",
        "generation",
        "hub",
        "models",
        "text",
    },
    "model": {"demo", "generation", "hub", "models", "tasks", "text"},
    "bulk": {"generation", "hub", "tasks", "text", "model"},
    "train": {"compat", "bulk", "generation", "hub", "tasks"},
    "serve": {"generation", "text", "model"},
}
"""folder, or the file model.py: others that it may import; `lab` and `cli` may import all"""


def imported(path: Path) -> set[str]:
    """The first part below the package of all that a file imports from it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.ImportFrom)
            and (node.module or "").split(".")[0] == "fairseq_aggdec"
        ):
            parts = (node.module or "").split(".")[1:2]
            names |= set(parts) if parts else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {
                alias.name.split(".")[1]
                for alias in node.names
                if alias.name.startswith("fairseq_aggdec.")
            }
    return {
        name
        for name in names
        if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()
    }


@pytest.mark.parametrize("folder", KNOWS)
def test_a_folder_imports_only_what_it_may_know(folder: str) -> None:
    allowed = {folder, *ROOT, *KNOWS[folder]}
    files = [*(PACKAGE / folder).rglob("*.py"), *PACKAGE.glob(f"{folder}.py")]
    assert files
    found = {
        (str(file.relative_to(PACKAGE)), name)
        for file in files
        for name in imported(file)
    }
    assert {(file, name) for file, name in found if name not in allowed} == set()


def test_the_root_knows_no_folder_and_no_import_is_relative() -> None:
    for name in ROOT:
        assert imported(PACKAGE / f"{name}.py") <= {*ROOT}, name
    for file in PACKAGE.rglob("*.py"):
        nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        assert not any(
            isinstance(node, ast.ImportFrom) and node.level > 0 for node in nodes
        ), file


def test_every_folder_is_named_and_the_arrows_have_no_circle() -> None:
    folders = {
        path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()
    }
    assert {*folders, "model"} == {*KNOWS, "lab", "cli"}
    left = {folder: set(others) for folder, others in KNOWS.items()}
    while left:
        free = {folder for folder, others in left.items() if not others & left.keys()}
        assert free, f"a circle among {sorted(left)}"
        left = {folder: others for folder, others in left.items() if folder not in free}


def test_decoding_and_scheduling_need_neither_fairseq_nor_more() -> None:
    for folder, libraries in (("decoding", {"torch"}), ("scheduling", set())):
        for file in (PACKAGE / folder).rglob("*.py"):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            names = {
                alias.name
                for node in ast.walk(tree)
                if isinstance(node, ast.Import)
                for alias in node.names
            }
            names |= {
                node.module or ""
                for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom)
            }
            assert {name.split(".")[0] for name in names} & {
                "fairseq",
                "torch",
                "numpy",
            } <= libraries, file


def test_one_file_imports_the_loops_on_the_device() -> None:
    """So that one commit can delete their folder, if a GPU shows that they do not pay."""
    knows = re.compile("^from fairseq_aggdec.engine.loops", re.MULTILINE)
    files = [
        file
        for file in PACKAGE.rglob("*.py")
        if knows.search(file.read_text(encoding="utf-8"))
    ]
    assert {file.name for file in files if file.parent.name != "loops"} == {
        "generator.py"
    }


def test_no_test_file_imports_another() -> None:
    """What several need is in tests/support, or in a file of its own beside them."""
    tests = Path(__file__).parents[1]
    imports = re.compile(r"^(?:from|import) tests\.(?:\w+\.)*test_", re.MULTILINE)
    found = {
        str(path.relative_to(tests))
        for path in tests.rglob("*.py")
        if imports.search(path.read_text("utf-8"))
    }
    assert not found


def test_one_file_asks_for_the_device() -> None:
    """Of what decodes. `engine/cuda` and `engine/graphs` hold what that file has chosen for a GPU."""
    asks = re.compile(
        r"\bis_cuda\b|\bis_cpu\b|device\.type\s*(?:==|!=|in\b)|cuda\.is_available"
    )
    found = {
        str(file.relative_to(PACKAGE))
        for folder in ("decoding", "scheduling", "generation", "engine")
        for file in (PACKAGE / folder).rglob("*.py")
        if not {"cuda", "graphs"} & set(file.parts)
        and asks.search(file.read_text(encoding="utf-8"))
    }
    assert found == {"engine/choose_backend.py"}


NAMES = {
    name
    for name, value in vars(modes).items()
    if isinstance(value, str) and value in modes.MODES
}
"""constants that hold a mode's name"""


def asked_by_name(tree: ast.AST) -> int:
    """The number of places that name a mode where they could ask it a question, or take a constant.

    fairseq has an option `beam`, so that this word alone counts in comparisons only.
    """
    found = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            found += node.value in modes.MODES.keys() - {modes.BEAM}
        elif isinstance(node, ast.Compare):
            sides = [
                part
                for side in (node.left, *node.comparators)
                for part in getattr(side, "elts", [side])
            ]
            found += sum(
                isinstance(part, ast.Constant) and part.value == modes.BEAM
                for part in sides
            )
            found += sum(
                isinstance(part, ast.Name) and part.id in NAMES for part in sides
            )
    return found


def test_no_mode_is_asked_for_by_its_name() -> None:
    """But by modes.py: others ask what a mode does (`Mode.copies`), or hand a name on (`GREEDY`)."""
    counts = {
        str(file.relative_to(PACKAGE)): asked_by_name(
            ast.parse(file.read_text(encoding="utf-8"))
        )
        for file in PACKAGE.rglob("*.py")
    }
    # the latter names the function `aggressive`
    del counts["generation/modes.py"], counts["__init__.py"]
    assert {file: count for file, count in counts.items() if count} == {}


@pytest.mark.parametrize(("option", "limit"), [("top_beta", 4), ("drafter_path", 10)])
def test_an_option_is_known_in_few_files(option: str, limit: int) -> None:
    """The rest hands on `Decoding`."""
    word = re.compile(rf"\b{option}\b")
    files = [
        file.name
        for file in PACKAGE.rglob("*.py")
        if word.search(file.read_text(encoding="utf-8"))
    ]
    assert len(files) <= limit, files
