"""`aggdec average` and `aggdec export`."""

from pathlib import Path

import pytest
import torch

from fairseq_aggdec import load
from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.train.averaging import last_checkpoints
from fairseq_aggdec.train.exporting import slim_state
from tests.support.helpers import ToyModel, refused_with


def save(path: Path, updates: int = 2, /, **weights: torch.Tensor) -> Path:
    state = {
        "args": None,
        "cfg": {"model": {"_name": "transformer"}},
        "model": weights,
        "optimizer_history": [{"num_updates": 1}, {"num_updates": updates}],
        "last_optimizer_state": {"large": torch.zeros(1000)},
        "extra_state": {"epoch": 7, "train_iterator": {"epoch": 7}},
    }
    torch.save(state, path)
    return path


def average(folder: Path, last: int) -> Path:
    output = folder / "model.pt"
    words = ["average", folder, "--last", last, "--output", output]
    aggdec(list(map(str, words)))
    return output


def test_mean_of_the_last_checkpoints(tmp_path: Path) -> None:
    """What was not trained stays to the bit, as a frozen encoder is known by a hash; a counter has its last value."""
    same = {
        "frozen": torch.randn(200, generator=torch.Generator().manual_seed(1)),
        "fingerprint": torch.tensor([0, 1, 255, 2**62 + 1]),
    }
    # by number, not by name
    for update, value in ((500, 100.0), (1000, 1.0), (2000, 3.0), (10000, 5.0)):
        weights = {
            "weight": torch.full((2,), value, dtype=torch.bfloat16),
            "counter": torch.tensor(update),
        }
        save(tmp_path / f"checkpoint_1_{update}.pt", **weights, **same)
    save(tmp_path / "checkpoint_best.pt", weight=torch.full((2,), 7.0))
    state = read_checkpoint(average(tmp_path, last=3))
    found = state["model"]
    assert found["weight"].equal(torch.full((2,), 3.0))
    assert all(found[name].equal(weight) for name, weight in same.items())
    assert found["counter"].tolist() == 10000
    assert state["last_optimizer_state"] is None
    assert state["extra_state"]["epoch"] == 0


def test_the_last_checkpoints_of_a_training_that_numbers_some_by_epochs_and_some_by_updates(
    tmp_path: Path,
) -> None:
    """fairseq-train does with --save-interval-updates; the last of an epoch can have a name of both kinds."""
    updates = {"8": 8000, "9": 9000, "10": 10000, "_9_9000": 9000, "_10_9500": 9500}
    for name, update in updates.items():
        save(tmp_path / f"checkpoint{name}.pt", update)
    latest = [
        path.stem.removeprefix("checkpoint") for path in last_checkpoints(tmp_path, 3)
    ]
    assert latest == ["_9_9000", "_10_9500", "10"]


@pytest.mark.parametrize(
    "other, message",
    [
        (None, "holds 1 numbered checkpoints"),
        ({}, r"checkpoint_1_600\.pt has other parameters"),
        (
            {"fingerprint": torch.tensor([1, 3])},
            r"checkpoint_1_600\.pt: `fingerprint` differs .*checkpoint_1_500\.pt",
        ),
    ],
)
def test_what_has_no_mean_is_refused(
    tmp_path: Path, other: dict[str, torch.Tensor] | None, message: str
) -> None:
    save(tmp_path / "checkpoint_1_500.pt", fingerprint=torch.tensor([1, 2]))
    if other is not None:
        save(tmp_path / "checkpoint_1_600.pt", **other)
    with refused_with(message):
        average(tmp_path, last=2)
    assert not (tmp_path / "model.pt").exists()


def export(checkpoint: Path, folder: Path, data: Path, *options: object) -> Path:
    aggdec(["export", *map(str, (checkpoint, folder, "--data", data, *options))])
    return folder / "model.pt"


def test_an_exported_folder_decodes_alone(
    toy_model_dir: ToyModel, tmp_path: Path
) -> None:
    data = toy_model_dir.data
    lines = (data / "test.src").read_text("utf-8").splitlines()[:5]
    exported = export(toy_model_dir.checkpoint, tmp_path / "model", data, "--fp32")
    assert str(data) not in str(read_checkpoint(exported)["cfg"])
    before, after = (
        load(path, folder, source_lang="src", target_lang="tgt").decode(lines)
        for path, folder in (
            (toy_model_dir.checkpoint, data),
            (exported, exported.parent),
        )
    )
    assert [one.text for one in before] == [one.text for one in after]


def test_an_exported_checkpoint_is_small(toy_model_dir: ToyModel) -> None:
    """The shared embedding is one tensor, also where an average has made copies of it."""
    state = read_checkpoint(toy_model_dir.checkpoint)
    copies = {name: value.clone() for name, value in state["model"].items()}
    slim = slim_state({**state, "model": copies})
    assert slim["last_optimizer_state"] is None
    weights = slim["model"]
    kinds = {w.dtype for w in weights.values() if w.is_floating_point()}
    assert kinds == {torch.float16}
    embedding = weights["encoder.embed_tokens.weight"]
    assert weights["decoder.embed_tokens.weight"] is embedding
    assert weights["decoder.output_projection.weight"] is embedding


def test_what_a_drafter_shares_with_its_verifier_is_left_out_and_no_other_model_is_replaced(
    tmp_path: Path,
) -> None:
    """By name, shape and value, also of an exported verifier; the drafter's weights and its fingerprint stay."""
    encoder, decoder = torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(1))
    (tmp_path / "dict.src.txt").write_text("a 1\n")
    verifier = save(
        tmp_path / "verifier.pt", encoder=encoder, decoder=decoder, bias=torch.zeros(3)
    )
    fingerprint = torch.arange(4, dtype=torch.int32)
    weights = {
        "decoder": decoder + 1,
        "bias": torch.zeros(4),
        "print": fingerprint,
    }
    drafter = save(tmp_path / "drafter.pt", encoder=encoder, **weights)
    exported = export(verifier, tmp_path, tmp_path)  # into its data folder
    before = exported.read_bytes()
    with refused_with(r"model\.pt: is there already; name another"):
        export(drafter, tmp_path, tmp_path)
    assert exported.read_bytes() == before
    for model, precision in ((verifier, ["--fp32"]), (exported, [])):
        folder = tmp_path / model.stem
        shared = ["--without-shared", model, *precision]
        kept = read_checkpoint(export(drafter, folder, tmp_path, *shared))["model"]
        assert kept.keys() == weights.keys()
        assert kept["print"].equal(fingerprint)
    folder = tmp_path / "other"
    with refused_with(r"no weights in common with .*drafter\.pt"):
        export(drafter, folder, tmp_path, "--without-shared", exported, "--fp32")
