"""Which folder imports which: docs/CONTRIBUTING.md says so."""

import ast
import re
from pathlib import Path

import pytest

import fairseq_aggdec
from fairseq_aggdec.generation import modes

PACKAGE = Path(fairseq_aggdec.__file__).parent
ROOT = {
    "checkout",
    "errors",
    "files",
    "installed",
    "process",
    "progress",
    "structured_files",
}
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


def modules(path: Path) -> set[str]:
    """All that a file imports, with what it takes from it: `fairseq_aggdec.errors.AggdecError`."""
    names = set[str]()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def imported(path: Path) -> set[str]:
    """The first part below the package of all that a file imports from it."""
    parts = [name.split(".") for name in modules(path)]
    ours = {
        second
        for first, second, *_ in filter(lambda n: len(n) > 1, parts)
        if first == "fairseq_aggdec"
    }
    return {
        name
        for name in ours
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


def test_the_root_knows_no_folder() -> None:
    for name in ROOT:
        assert imported(PACKAGE / f"{name}.py") <= ROOT, name


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
            first = {name.split(".")[0] for name in modules(file)}
            assert first & {"fairseq", "torch", "numpy"} <= libraries, file


def test_one_file_imports_the_loops_on_the_device() -> None:
    """So that one commit can delete their folder, if a GPU shows that they do not pay."""
    files = [path for path in PACKAGE.rglob("*.py") if path.parent.name != "loops"]
    names = {file.name for file in files if "engine.loops" in str(modules(file))}
    assert names == {"generator.py"}


def test_no_test_file_imports_another() -> None:
    """What several need is in tests/support, or in a file of its own beside them."""
    for path in Path(__file__).parents[1].rglob("*.py"):
        names = [name.split(".") for name in modules(path)]
        found = [
            name
            for name in names
            if name[0] == "tests"
            and any(part.startswith("test_") for part in name[:-1])
        ]
        assert not found, path


def test_one_file_asks_for_the_device() -> None:
    """Of what decodes. `engine/cuda` and `engine/graphs` hold what that file has chosen for a GPU."""
    asks = re.compile(
        r"\bis_cuda\b|\bis_cpu\b|device\.type\s*(?:==|!=|in\b)|cuda\.is_available"
    )
    folders = ("decoding", "scheduling", "generation", "engine")
    files = [file for folder in folders for file in (PACKAGE / folder).rglob("*.py")]
    found = {
        file.name
        for file in files
        if asks.search(file.read_text("utf-8"))
        and file.parent.name not in ("cuda", "graphs")
    }
    assert found == {"choose_backend.py"}


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
            ast.parse(file.read_text("utf-8"))
        )
        for file in PACKAGE.rglob("*.py")
    }
    # the latter names the function `aggressive`
    del counts["generation/modes.py"], counts["__init__.py"]
    assert {file: count for file, count in counts.items() if count} == {}


@pytest.mark.parametrize("option, limit", [("top_beta", 4), ("drafter_path", 10)])
def test_an_option_is_known_in_few_files(option: str, limit: int) -> None:
    """The rest hands on `Decoding`."""
    word = re.compile(rf"\b{option}\b")
    files = [
        file.name
        for file in PACKAGE.rglob("*.py")
        if word.search(file.read_text("utf-8"))
    ]
    assert len(files) <= limit, files
