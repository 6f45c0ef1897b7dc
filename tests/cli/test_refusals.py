"""What cannot be honoured is refused by name, before anything is decoded.

The options of fairseq's search are in tests/tasks/test_refused_options.py.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest
from fairseq_cli import generate as generate_command

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.errors import AggdecError
from tests.cli.correction import PLUGIN, SENTENCES
from tests.support.helpers import ToyModel


@pytest.fixture
def refusal(correction_model: ToyModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs fairseq-generate in this process; returns what it refuses to do."""

    def run(decoding: str, *options: object, path: object = None, data: Path = correction_model.data) -> str:
        fixed = [data, "--path", path or correction_model.checkpoint, "--user-dir", PLUGIN, "--cpu"]
        task = ["--task", "aggressive_translation", "--decoding", decoding]
        monkeypatch.setattr("sys.argv", ["fairseq-generate", *map(str, [*fixed, *task, *options])])
        with pytest.raises(AggdecError) as caught:
            generate_command.cli_main()
        assert "H-" not in capsys.readouterr().out
        return str(caught.value)

    return run


def test_options(refusal: Any, correction_model: ToyModel) -> None:
    both = f"{correction_model.checkpoint}:{correction_model.checkpoint}"
    assert "--bit-exact takes one model, and --path names 2" in refusal("iad", "--bit-exact", path=both)
    assert "--decoding-stats" in refusal("iad", "--decoding-stats", "/nowhere/stats.jsonl")
    assert "--max-tokens" in refusal("iad", "--max-tokens", 5)
    assert "needs a model with proposal heads, and --path" in refusal("blockwise")
    assert refusal("fastest").startswith("--decoding fastest: choose from beam, greedy")
    assert "--path (or --lm-path) has a name that is empty" in refusal("iad", path=f"{correction_model.checkpoint}:")


def test_overrides_that_fit_no_model(refusal: Any) -> None:
    for given in ("[1]", "{'model'", "{[]: 1}", ""):
        assert f"--model-overrides {given}: must be a dictionary" in refusal("iad", "--model-overrides", given)
    for given, reason in (
        ("{'task': {'model': {}}}", "Missing key model"),
        ("{'encoder_layers': 7}", "Missing key(s)"),
    ):
        message = refusal("iad", "--model-overrides", given)
        assert f"checkpoint_last.pt: {reason}" in message
        assert message.endswith(", and --model-overrides")


def test_dictionaries_of_another_model(refusal: Any, correction_model: ToyModel, tmp_path: Path) -> None:
    data = Path(shutil.copytree(correction_model.data, tmp_path / "data"))
    messages = ("size mismatch for decoder.output_projection.weight", "--share-all-embeddings requires a joined dict")
    for language, message in zip(("src", "tgt"), reversed(messages), strict=True):
        with (data / f"dict.{language}.txt").open("a", encoding="utf-8") as file:
            file.write("onemore 1\n")
        found = refusal("iad", data=data)
        assert found.startswith(f"checkpoint {correction_model.checkpoint}: {message}")
        assert found.endswith(f"check whether the dictionaries in {data} are those of its training")


def test_verifier_and_drafter_in_each_others_places(
    refusal: Any, correction_model: ToyModel, correction_drafter: Path
) -> None:
    message = refusal("gad", "--drafter-path", correction_drafter, path=correction_drafter)
    assert f"--path {correction_drafter}: a block drafter, not a verifier" in message
    message = refusal("gad", "--drafter-path", correction_model.checkpoint)
    assert f"--drafter-path {correction_model.checkpoint}: an ordinary model, not a block drafter" in message
    assert "swapped" in message
    message = refusal("speculative", "--drafter-path", correction_drafter)
    assert "a block drafter, not an ordinary model, which --decoding speculative takes" in message
    assert "an ordinary model" in refusal("nar")


def test_draft_files(refusal: Any, correction_drafter: Path, tmp_path: Path) -> None:
    drafts = tmp_path / "drafts"
    given = ["--draft-file", drafts]
    assert f"--draft-file {drafts}: no such file" in refusal("iad", *given)
    assert f"--draft-file {tmp_path}: Is a directory: name a" in refusal("iad", "--draft-file", tmp_path)
    drafts.write_text("ba\n\n", encoding="utf-8")
    message = refusal("iad++", *given)
    assert f"--draft-file {drafts}: has 2 lines, and the split test {SENTENCES} sentences" in message
    drafts.write_bytes("ba\nB\xe4r\n".encode("latin-1"))
    assert f"{drafts}, line 2: not valid UTF-8" in refusal("aggressive", *given)
    assert "--draft-file is read by" in refusal("greedy", *given)
    both = ["--drafter-path", correction_drafter, *given]
    assert "--draft-file does not go with --drafter-path" in refusal("aggressive", *both)


def test_dictionaries_beside_a_drafter(
    refusal: Any, correction_model: ToyModel, correction_drafter: Path, tmp_path: Path
) -> None:
    """An export and an ordinary model have no record but the files themselves."""
    aggdec(["export", str(correction_drafter), str(tmp_path), "--data", str(correction_model.data)])
    with (tmp_path / "dict.src.txt").open("a", encoding="utf-8") as file:
        file.write("onemore 1\n")
    shutil.copy(correction_model.checkpoint, tmp_path / "small.pt")
    for decoding, name in {"gad": "model.pt", "speculative": "small.pt"}.items():
        message = refusal(decoding, "--drafter-path", tmp_path / name)
        assert f"source dictionary ({tmp_path / 'dict.src.txt'})" in message
