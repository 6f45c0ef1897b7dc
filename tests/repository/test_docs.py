"""The README and the pages of docs/: links, the index, citations, tables, and what the shipped corrector says."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from fairseq_aggdec import load
from fairseq_aggdec.generation.drafting import DRAFTERS
from fairseq_aggdec.generation.modes import MODES
from fairseq_aggdec.text.edits import marked
from tests.support.oracle import assert_fairseqs
from tests.support.random_models import ENGINE_SHAPES, random_batch
from tests.support.small_generators import FEW_WORDS, cached_model, generator

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *(
        path
        for part in ("configs", "docs")
        for path in sorted((ROOT / part).rglob("*.md"))
    ),
]
TEXT = {str(page.relative_to(ROOT)): page.read_text("utf-8") for page in PAGES}


@pytest.mark.parametrize("page", TEXT)
def test_named_files_and_sections_exist(page: str) -> None:
    for path, section in re.findall(r"\]\(([^)#:\s]*)(?:#([^)]+))?\)", TEXT[page]):
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), f"{page} links to {path}"
        if section:
            headings = re.findall(
                r"^#+ (.*)", target.read_text("utf-8"), flags=re.MULTILINE
            )
            anchors = [
                re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
                for heading in headings
            ]
            assert section in anchors, f"{page} links to #{section} of {target.name}"


def test_every_page_is_in_the_index() -> None:
    index = ROOT / "docs/README.md"
    linked = {
        (index.parent / path).resolve()
        for path in re.findall(r"\]\(([^)#:\s]+\.md)", TEXT["docs/README.md"])
    }
    assert {page.resolve() for page in PAGES} - linked == {index.resolve()}


def test_the_readme_names_modes_that_there_are() -> None:
    """All modes and options are in docs/options.md, by tests/support/measured_tables.py."""
    table = TEXT["README.md"].partition("| `--decoding` |")[2].partition("\n\n")[0]
    named = re.findall(r"^\| `(\S+)` \|", table, re.MULTILINE)
    assert named
    assert set(named) <= MODES.keys()


def test_every_experiment_is_in_the_table_of_configs() -> None:
    named = re.findall(
        r"`(\w+)`",
        "".join(
            re.findall(r"^\| (`[^|]+) \|", TEXT["configs/README.md"], re.MULTILINE)
        ),
    )
    experiments = {path.parent.name for path in (ROOT / "configs").glob("*/about.yaml")}
    assert experiments - set(named) == set()


PLACES = re.findall(
    r"^\| ((?:\w+ et al\. \d{4}, [^|]+)) \| [^|]+ \| (\[[^|]+) \|$",
    TEXT["docs/papers.md"],
    re.MULTILINE,
)


@pytest.mark.parametrize("citations, files", PLACES)
def test_an_equation_lives_where_the_page_says(citations: str, files: str) -> None:
    """The file's docstring names paper and place: `papers/000 Eq. 7` for Ge et al. 2022, Eq. 7."""
    numbers = {
        cited: number
        for number, cited in re.findall(
            r"^\| (\d+) \| ([^|]+) \|", TEXT["docs/papers.md"], re.M
        )
    }
    for path in re.findall(r"\]\(([^)]+)\)", files):
        docstring = " ".join(
            (
                ast.get_docstring(ast.parse((ROOT / "docs" / path).read_text("utf-8")))
                or ""
            ).split()
        )
        for citation in citations.split("; "):
            paper, _, place = citation.partition(", ")
            assert re.search(
                rf"{numbers[paper]} {re.escape(place)}(?!\.?\d)", docstring
            ), f"{path}: {citation}"


def replaced_names(source: str) -> set[str]:
    """What a module assigns to parts of what it imports from fairseq or PyTorch, as `data_utils.batch_by_size`."""
    nodes = list(ast.walk(ast.parse(source)))
    imported = {
        name.asname or name.name.partition(".")[0]
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
        if re.match(
            r"(fairseq|fairseq_cli|torch)(\.|$)",
            getattr(node, "module", None) or name.name,
        )
    }
    assigned = [
        ast.unparse(node)
        for node in nodes
        if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del)
    ]
    assigned += [
        ".".join(map(ast.unparse, node.args[:2]))
        for node in nodes
        if isinstance(node, ast.Call)
        and re.search(r"setattr$|delattr$|patch\.object$", ast.unparse(node.func))
    ]
    return {
        name for name in assigned if "." in name and name.partition(".")[0] in imported
    }


def test_the_page_lists_every_name_of_fairseq_that_is_replaced() -> None:
    section = TEXT["docs/fairseq.md"].partition("## What the plugin changes in fairseq")
    table = re.findall(r"^\| (`.*?) \|", section[2].partition("\n## ")[0], re.MULTILINE)
    listed = re.findall(r"`([^`]+)`", "".join(table))
    package = (ROOT / "fairseq_aggdec").rglob("*.py")
    replaced = [replaced_names(path.read_text("utf-8")) for path in package]
    assert sorted(listed) == sorted(set().union(*replaced))


def test_the_drafter_on_the_page_is_lossless(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has fairseq's output, and some of its drafts are accepted."""
    [code] = re.findall(r"```python\n(.*?)```", TEXT["docs/CONTRIBUTING.md"], re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 40
    tables: list[Any] = [MODES, DRAFTERS]
    for table in tables:
        monkeypatch.setitem(table, "repeating", None)  # so that it is gone afterwards
    page: dict[str, Any] = {}
    exec(code, page)
    accepted = 0
    for shape in ENGINE_SHAPES[:3]:
        for seed in range(3):
            models = [cached_model(shape, seed)]
            sample = random_batch(seed, FEW_WORDS, [9, 5, 1])
            ours = generator(models, "repeating", FEW_WORDS, max_len_b=60)
            assert_fairseqs(
                ours.generate(models, sample), models, FEW_WORDS, sample, max_len_b=60
            )
            accepted += ours.totals.accepted
    assert accepted > 20


def test_what_replaces_a_pipeline_translates_and_summarizes_as_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With small models of the families, which know the page's sentences by heart."""
    small = {
        "opus-mt-en-de": "marian",
        "nllb-200-distilled-600M": "nllb",
        "bart-large-cnn": "bart",
    }
    for folder, model in small.items():
        (tmp_path / folder).symlink_to(ROOT / "tests/hub/models" / model)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # all code but that of transformers
    blocks = re.findall(r"```python\n(.*?)```", TEXT["docs/pipeline.md"], re.DOTALL)
    exec("".join(code for code in blocks if "# before" not in code), {})
    assert capsys.readouterr().out.splitlines() == [
        "Wir gehen zum Chinesen.",
        "We're going out for Chinese.",
        "Sie trägt gerne Miniröcke. 3",
    ]


def without_marks(shown: str) -> str:
    """A text without the marks of its changes."""
    return re.sub(r"\[-(.*?)-\]", r"\1", re.sub(r"\{\+.*?\+\}", "", shown))


def test_texts_are_corrected_as_the_page_shows() -> None:
    """Five pasted paragraphs, and forty inputs that nobody had tried before."""
    page = TEXT["docs/corrector.md"]
    paragraphs = re.findall(r"```text\n(.*?)\n```", page, re.S)
    [forty] = re.findall(r"```forty\n(.*?)\n```", page, re.S)
    lines = [
        line.replace(" ⏎ ", "\n").replace(" ⇥ ", "\t") for line in forty.splitlines()
    ]
    shown = [*paragraphs, *(line for line in lines if not line.startswith("    was "))]
    assert len(shown) == 5 + 40
    results = load.shipped("gec").correct(list(map(without_marks, shown)))
    assert [marked(result) for result in results] == shown
