"""Tests of `aggdec export`."""

from pathlib import Path

import pytest
import torch

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.train.exporting import slim_state
from tests.support.helpers import PLUGIN, ToyModel, parse_generate, run_cli


def export(checkpoint: Path, folder: Path, data: Path, *options: object) -> Path:
    aggdec(["export", *map(str, (checkpoint, folder, "--data", data, *options))])
    return folder / "model.pt"


def test_exported_folder_decodes_alone(toy_model_dir: ToyModel, tmp_path: Path) -> None:
    lines = (
        (toy_model_dir.data / "test.src").read_text(encoding="utf-8").splitlines()[:5]
    )
    options = ["--user-dir", PLUGIN, "-s", "src", "-t", "tgt"]

    def outputs(checkpoint: Path, data: Path) -> list[list[str]]:
        done = run_cli(
            "fairseq-interactive",
            data,
            "--path",
            checkpoint,
            *options,
            stdin="\n".join(lines),
        )
        return [sentence.tokens for sentence in parse_generate(done.stdout).values()]

    model = (toy_model_dir.checkpoint, toy_model_dir.data)
    exported = export(model[0], tmp_path / "model", model[1], "--fp32")
    assert outputs(exported, exported.parent) == outputs(*model)


def test_exported_checkpoint_is_small_and_names_no_paths(
    toy_model_dir: ToyModel,
) -> None:
    state = read_checkpoint(toy_model_dir.checkpoint)
    slim = slim_state(state)
    assert slim["last_optimizer_state"] is None
    assert str(toy_model_dir.data) not in str(slim["cfg"])
    assert {w.dtype for w in slim["model"].values() if w.is_floating_point()} == {
        torch.float16
    }
    # the shared embedding is one tensor, also where an average had made copies of it
    names = [
        "encoder.embed_tokens.weight",
        "decoder.embed_tokens.weight",
        "decoder.output_projection.weight",
    ]
    separate = {
        **state,
        "model": {name: value.clone() for name, value in state["model"].items()},
    }
    weights = slim_state(separate)["model"]
    assert len({id(weights[name]) for name in names}) == 1


def save_model(path: Path, **weights: torch.Tensor) -> Path:
    cfg = {"model": {"_name": "transformer"}}
    torch.save(
        {
            "cfg": cfg,
            "args": None,
            "model": weights,
            "optimizer_history": [{"num_updates": 1}],
        },
        path,
    )
    return path


def test_what_a_drafter_shares_with_its_verifier_is_left_out_and_no_other_model_is_replaced(
    tmp_path: Path,
) -> None:
    """By name, shape and value, also of an exported verifier; the drafter's own weights and its fingerprint stay."""
    encoder, decoder = torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(1))
    (tmp_path / "dict.src.txt").write_text("a 1\n")
    verifier = save_model(
        tmp_path / "verifier.pt", encoder=encoder, decoder=decoder, bias=torch.zeros(3)
    )
    fingerprint = torch.arange(4, dtype=torch.int32)
    weights = {
        "decoder": decoder + 1,
        "bias": torch.zeros(4),
        "mask": torch.ones(4),
        "print": fingerprint,
    }
    drafter = save_model(tmp_path / "drafter.pt", encoder=encoder, **weights)
    exported = export(verifier, tmp_path, tmp_path)  # into its data folder
    before = exported.read_bytes()
    with pytest.raises(
        AggdecError,
        match=r"model\.pt: is there already; name another folder, or delete it first",
    ):
        export(drafter, tmp_path, tmp_path)
    assert exported.read_bytes() == before
    for model, precision in ((verifier, ["--fp32"]), (exported, [])):
        kept = read_checkpoint(
            export(
                drafter,
                tmp_path / model.stem,
                tmp_path,
                "--without-shared",
                model,
                *precision,
            )
        )["model"]
        assert kept.keys() == weights.keys()
        assert kept["print"].equal(fingerprint)
    with pytest.raises(
        AggdecError, match=r"has no weights in common with .*drafter\.pt"
    ):
        export(
            drafter,
            tmp_path / "other",
            tmp_path,
            "--without-shared",
            exported,
            "--fp32",
        )
