"""The shipped model between text and tokens."""

from pathlib import Path

import pytest

import fairseq_aggdec
from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.demo.model import DemoModel
from fairseq_aggdec.demo.tasks import TASKS, DemoTask
from fairseq_aggdec.errors import AggdecError


@pytest.fixture(scope="module")
def model() -> DemoModel:
    fairseq_aggdec.register()
    return DemoModel.load(TASKS["gec"])


@pytest.mark.parametrize(
    "text", ["She doesn't like well-known cars, does she?", "Unbelievably, it (the house) was 3.5 km away."]
)
def test_text_comes_back_as_it_was(model: DemoModel, text: str) -> None:
    assert model.decode(model.encode(text), text) == text


def test_tokens_are_subwords_and_the_end(model: DemoModel) -> None:
    tokens = model.tokens(model.encode("Unbelievably good."))
    assert tokens[-1] == "</s>"
    assert tokens[-3:-1] == ["good", "."]
    assert "".join(token.removesuffix("@@") for token in tokens[:-3]) == "Unbelievably"


def test_a_missing_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("model.pt", "dict.en.txt"):
        (tmp_path / name).touch()
    monkeypatch.setattr(DemoTask, "folder", tmp_path)
    with pytest.raises(AggdecError, match=r"bpecodes: missing; .*install it again"):
        DemoModel.load(TASKS["gec"])


@pytest.mark.parametrize("demo", TASKS.values(), ids=list(TASKS))
def test_everything_is_shipped(demo: DemoTask) -> None:
    """With the dictionaries of the languages that the checkpoint names: fairseq looks for these."""
    assert [name for name in [*demo.files, "README.md", "sentences.txt"] if not (demo.folder / name).is_file()] == []
    assert sum(file.stat().st_size for file in demo.folder.iterdir()) <= {"gec": 12e6, "mt": 20e6}[demo.name]
    recorded = read_checkpoint(demo.folder / "model.pt")["cfg"]["task"]
    assert (recorded["source_lang"], recorded["target_lang"]) == (demo.source_language, demo.target_language)
    languages = {demo.source_language, demo.target_language}
    assert {file.name for file in demo.folder.glob("dict.*")} == {f"dict.{language}.txt" for language in languages}
