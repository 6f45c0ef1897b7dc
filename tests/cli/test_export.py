"""Tests of `aggdec export`."""

from pathlib import Path

import pytest
import torch

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.train.exporting import slim_state
from tests.support.helpers import PLUGIN, ToyModel, parse_generate, run_cli


def test_exported_folder_decodes_alone(toy_model_dir: ToyModel, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    aggdec(["export", str(toy_model_dir.checkpoint), str(folder), "--data", str(toy_model_dir.data), "--fp32"])
    lines = (toy_model_dir.data / "test.src").read_text(encoding="utf-8").splitlines()[:5]
    options = ["--user-dir", PLUGIN, "-s", "src", "-t", "tgt"]

    def outputs(data: Path, checkpoint: Path) -> list[list[str]]:
        done = run_cli("fairseq-interactive", data, "--path", checkpoint, *options, stdin="\n".join(lines))
        return [sentence.tokens for sentence in parse_generate(done.stdout).values()]

    assert outputs(folder, folder / "model.pt") == outputs(toy_model_dir.data, toy_model_dir.checkpoint)
    with pytest.raises(AggdecError, match=r"has no dict\.\*\.txt"):
        aggdec(["export", str(toy_model_dir.checkpoint), str(tmp_path / "out"), "--data", str(tmp_path)])


def test_a_model_is_exported_into_its_data_folder_and_no_other_model_is_replaced(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    verifier, drafter = pair
    aggdec(["export", str(verifier), str(tmp_path), "--data", str(tmp_path)])
    before = (tmp_path / "model.pt").read_bytes()
    with pytest.raises(AggdecError, match=r"model\.pt: is there already; name another folder, or delete it first"):
        aggdec(["export", str(drafter), str(tmp_path), "--data", str(tmp_path)])
    assert (tmp_path / "model.pt").read_bytes() == before


def test_exported_checkpoint_is_small_and_names_no_paths(toy_model_dir: ToyModel) -> None:
    state = read_checkpoint(toy_model_dir.checkpoint)
    slim = slim_state(state)
    assert slim["last_optimizer_state"] is None
    assert str(toy_model_dir.data) not in str(slim["cfg"])
    assert {w.dtype for w in slim["model"].values() if w.is_floating_point()} == {torch.float16}
    # the shared embedding is one tensor, also where an average had made copies of it
    names = ["encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "decoder.output_projection.weight"]
    separate = {**state, "model": {name: value.clone() for name, value in state["model"].items()}}
    weights = slim_state(separate)["model"]
    assert len({id(weights[name]) for name in names}) == 1


def save_model(path: Path, **weights: torch.Tensor) -> Path:
    cfg = {"model": {"_name": "transformer"}}
    torch.save({"cfg": cfg, "args": None, "model": weights, "optimizer_history": [{"num_updates": 1}]}, path)
    return path


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A verifier, and a drafter with its encoder."""
    encoder, decoder = torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(1))
    (tmp_path / "dict.src.txt").write_text("a 1\n")
    verifier = save_model(tmp_path / "verifier.pt", encoder=encoder, decoder=decoder, bias=torch.zeros(3))
    mask = torch.ones(4)
    fingerprint = torch.arange(4, dtype=torch.int32)
    weights = {"encoder": encoder, "decoder": decoder + 1, "bias": torch.zeros(4), "mask": mask, "print": fingerprint}
    return verifier, save_model(tmp_path / "drafter.pt", **weights)


def test_only_a_drafter_has_a_length_of_drafts(pair: tuple[Path, Path], tmp_path: Path) -> None:
    options = [str(tmp_path / "out"), "--data", str(tmp_path), "--decoding-block-size", "2"]
    with pytest.raises(AggdecError, match=r"--decoding-block-size 2: .*verifier\.pt: an ordinary model: only"):
        aggdec(["export", str(pair[0]), *options])
    assert not (tmp_path / "out/model.pt").exists()


def test_what_a_drafter_shares_with_its_verifier_is_left_out(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """By name, shape and value, also of an exported verifier; the drafter's own weights and its fingerprint stay."""
    verifier, drafter = pair
    aggdec(["export", str(verifier), str(tmp_path / "verifier"), "--data", str(tmp_path)])
    options = ["--data", str(tmp_path), "--without-shared"]
    aggdec(["export", str(drafter), str(tmp_path / "one"), *options, str(verifier), "--fp32"])
    exported = str(tmp_path / "verifier/model.pt")
    aggdec(["export", str(drafter), str(tmp_path / "other"), *options, exported])
    for folder in ("one", "other"):
        kept = read_checkpoint(tmp_path / folder / "model.pt")["model"]
        assert set(kept) == {"decoder", "bias", "mask", "print"}
        assert kept["print"].tolist() == [0, 1, 2, 3]
    with pytest.raises(AggdecError, match=r"has no weights in common with .*drafter\.pt"):
        aggdec(["export", str(drafter), str(tmp_path / "other"), *options, exported, "--fp32"])
