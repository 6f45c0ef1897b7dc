"""Tests of `aggdec-export`."""

from pathlib import Path

import pytest
import torch

from fairseq_aggdec.cli import export
from fairseq_aggdec.compat import read_checkpoint
from fairseq_aggdec.errors import AggdecError
from tests.helpers import ToyModel, parse_generate, run_cli


def test_exported_folder_decodes_alone(toy_model_dir: ToyModel, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    export.main([str(toy_model_dir.checkpoint), str(folder), "--data", str(toy_model_dir.data), "--fp32"])
    lines = (toy_model_dir.data / "test.src").read_text(encoding="utf-8").splitlines()[:5]
    options = ["--user-dir", "fairseq_aggdec", "-s", "src", "-t", "tgt"]

    def outputs(data: Path, checkpoint: Path) -> list[list[str]]:
        done = run_cli("fairseq-interactive", data, "--path", checkpoint, *options, stdin="\n".join(lines), cwd=_root())
        return [sentence.tokens for sentence in parse_generate(done.stdout).values()]

    assert outputs(folder, folder / "model.pt") == outputs(toy_model_dir.data, toy_model_dir.checkpoint)


def test_exported_checkpoint_is_small_and_names_no_paths(toy_model_dir: ToyModel) -> None:
    state = read_checkpoint(toy_model_dir.checkpoint)
    slim = export.slim_state(state)
    assert slim["last_optimizer_state"] is None
    assert str(toy_model_dir.data) not in str(slim["cfg"])
    assert {w.dtype for w in slim["model"].values() if w.is_floating_point()} == {torch.float16}
    # the shared embedding is one tensor, also where an average had made copies of it
    names = ["encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "decoder.output_projection.weight"]
    separate = {**state, "model": {name: value.clone() for name, value in state["model"].items()}}
    weights = export.slim_state(separate)["model"]
    assert len({id(weights[name]) for name in names}) == 1


def test_wrong_data_folder_is_named(toy_model_dir: ToyModel, tmp_path: Path) -> None:
    with pytest.raises(AggdecError, match=r"has no dict\.\*\.txt"):
        export.main([str(toy_model_dir.checkpoint), str(tmp_path / "out"), "--data", str(tmp_path)])


def _root() -> Path:
    return Path(__file__).resolve().parents[2]
