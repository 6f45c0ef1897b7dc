"""How whole test sets are run and taken up again; fairseq-generate is made up."""

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.lossless import beam_lists
from fairseq_aggdec.lab.lossless.beam_lists import Sentences, run_set, table

DOCS = Path(__file__).resolve().parents[3] / "docs"
RECORDS = sorted((DOCS / "beam_lists").glob("*.json"))
STOCK, OURS = "H-0\t-0.5\ta b\nH-0\t-0.75\ta\nH-1\t-1.0\tc\n", "H-1\t-1.0\tc\nH-0\t-0.500001\ta b\nH-0\t-0.75\ta\n"


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """The commands that were run; each writes its results."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        folder = Path(command[command.index("--results-path") + 1])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "generate-test.txt").write_text(OURS if "aggressive-beam" in command else STOCK)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    (tmp_path / "model.pt").write_text("a model")
    made = Sentences("made up", lambda _, args: (Path("bin"), args.work / "model.pt"), "--lenpen 2", batches=(8, 1))
    monkeypatch.setitem(beam_lists.SETS, "made_up", made)
    return commands


def run_made_up(work: Path, commit: str, limit: int | None = None) -> dict[str, Any]:
    return run_set("made_up", argparse.Namespace(work=work, limit=limit), commit)


def test_each_search_is_run_once_a_commit_and_compared(ran: list[list[str]], tmp_path: Path) -> None:
    record = run_made_up(tmp_path, "first")
    assert len(ran) == 3
    assert all("--lenpen" in command for command in ran)
    assert [(one["batch_size"], one["lists"], one["equal"]) for one in record["searches"]] == [(8, 2, 2), (1, 2, 2)]
    assert "--beam 5 --nbest 5" in record["stock"]
    assert "made up" in str(table([record]))
    assert run_made_up(tmp_path, "first")["searches"] == record["searches"]
    assert len(ran) == 3
    run_made_up(tmp_path, "second")
    assert len(ran) == 5, "stock fairseq's lists stay"
    (tmp_path / "model.pt").write_text("another model")
    run_made_up(tmp_path, "second")
    assert len(ran) == 8, "not those of another model"


@pytest.mark.usefixtures("ran")
def test_a_part_of_a_set_has_a_record_of_its_own(tmp_path: Path) -> None:
    whole = run_made_up(tmp_path, "first")
    assert run_made_up(tmp_path, "first", limit=2)["title"] == "made up, the first 2"
    assert run_made_up(tmp_path, "first", limit=3)["title"] == "made up", "it has two sentences"
    assert json.loads((tmp_path / "made_up.json").read_text()) == whole
    assert (tmp_path / "made_up-2.json").is_file()


def test_a_search_that_fails_is_named_and_leaves_no_results(
    ran: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = subprocess.CompletedProcess([], 1, stderr="no such file")
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "run", lambda *_, **__: failed)
        with pytest.raises(AggdecError, match=r"fairseq-generate .*: ended with 1: no such file"):
            run_made_up(tmp_path, "first")
    run_made_up(tmp_path, "first")
    assert len(ran) == 3


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_recorded_lists_are_fairseqs_and_are_in_the_page(path: Path) -> None:
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["title"] in (DOCS / "aggressive-beam.md").read_text(encoding="utf-8")
    assert not record["commit"].endswith("-dirty")
    for search in record["searches"]:
        assert search["equal"] + search["near_ties"] == search["lists"] > 0, search["differences"]
