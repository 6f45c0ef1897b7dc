"""Drafters trained by fairseq's own commands."""

import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.data import Dictionary

from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.tasks.block_drafting import BlockDraftingConfig, BlockDraftingTask
from tests.support.helpers import PLUGIN, TRAINING, ToyModel, refused_with, run_cli
from tests.support.random_models import dictionary

DRAFTING = ["--user-dir", PLUGIN, "--task", "block_drafting"]
LOSS = (
    "--arch nar_drafter_small --decoder-layers 1 --dropout 0.1 --block-size 8 --blocks-per-sentence 4 "
    "--criterion glancing_block_loss --glancing 0.5:0.3 --log-interval 5 "
    "--best-checkpoint-metric accepted --maximize-best-checkpoint-metric"
)


@pytest.fixture(scope="module")
def trained(
    toy_model_dir: ToyModel, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, ToyModel]:
    """The log of a drafter on the toy verifier's encoder, and the model."""
    folder = tmp_path_factory.mktemp("drafter")
    verifier = toy_model_dir.checkpoint
    options = [*DRAFTING, *LOSS.split(), "--save-dir", folder, "--freeze-encoder"]
    options += ["--encoder-from", verifier, "--decoder-from", verifier]
    training = (
        "--lr 0.01 --max-tokens 2000 --max-update 40 --no-epoch-checkpoints".split()
    )
    # an epoch has two or three updates
    intervals = "--validate-interval 2 --save-interval 2".split()
    done = run_cli(
        "fairseq-train", toy_model_dir.data, *options, *TRAINING, *training, *intervals
    )
    return done.stdout + done.stderr, ToyModel(
        toy_model_dir.data, folder / "checkpoint_last.pt"
    )


def figures(log: str, name: str) -> list[float]:
    return [float(value) for value in re.findall(rf"\b{name}[= ]([\d.]+)", log)]


def test_loss_falls(trained: tuple[str, ToyModel]) -> None:
    training, validation = (
        [line for line in trained[0].splitlines() if f"| {kind} |" in line]
        for kind in ("train_inner", "valid")
    )
    losses = [value for line in training for value in figures(line, "nll_loss")]
    assert len(losses) == 8
    assert losses[-1] < losses[0] - 0.2
    assert (
        figures(validation[-1], "nll_loss")[0] < figures(validation[0], "nll_loss")[0]
    )
    assert figures(training[0], "lambda")[0] == pytest.approx(0.49, abs=0.015)
    assert figures(training[-1], "lambda")[0] == pytest.approx(0.31, abs=0.015)
    assert all(0 < figures(line, "glanced")[0] < 0.5 for line in training)
    assert re.search(
        r"\| accepted [\d.]+ \| acc_1 [\d.]+ .* \| acc_8 [\d.]+", validation[-1]
    )
    assert "best_accepted" in validation[-1]


def equals_the_verifiers_encoder(
    drafter: dict[str, Any], verifier: dict[str, Any]
) -> bool:
    """To the bit, and in full precision whatever the training ran in; the shared embeddings of the decoder as well."""
    names = [
        name
        for name in verifier
        if name.startswith("encoder.") and not name.endswith("version")
    ]
    pairs = [(name, name) for name in names]
    pairs += [("decoder.output_projection.weight", "encoder.embed_tokens.weight")]
    return len(names) > 20 and all(
        torch.equal(drafter[mine], verifier[theirs]) for mine, theirs in pairs
    )


def test_checkpoint_is_loaded_without_the_verifiers_file(
    trained: tuple[str, ToyModel], toy_model_dir: ToyModel, tmp_path: Path
) -> None:
    """fairseq-validate repeats the figures of the training's last validation; a moved verifier does not disturb it."""
    state = read_checkpoint(trained[1].checkpoint)
    symbols = Dictionary.load(str(toy_model_dir.data / "dict.src.txt")).symbols
    assert state["task_state"]["source_symbols"] == symbols
    state["cfg"]["model"].encoder_from = state["cfg"]["model"].decoder_from = str(
        tmp_path / "moved.pt"
    )
    torch.save(state, tmp_path / "drafter.pt")
    options = [*DRAFTING, "--path", tmp_path / "drafter.pt", "--cpu"]
    options += ["--max-tokens", 900]
    found = run_cli("fairseq-validate", toy_model_dir.data, *options)
    last = [line for line in trained[0].splitlines() if "| valid |" in line][-1]
    accepted = figures(found.stdout + found.stderr, "accepted")
    # other batches round otherwise
    assert accepted[-1] == pytest.approx(figures(last, "accepted")[0], abs=0.011)


def test_yaml_bfloat16_and_averaged_weights(
    toy_model_dir: ToyModel, tmp_path: Path
) -> None:
    """fairseq-hydra-train with the experiment's configuration, made small: in bfloat16; also resumed.

    The average is of the decoder, and keeps what is frozen.
    """
    config = PLUGIN.parent / "configs" / "tatoeba_en_de"
    options = f"--config-dir {config} --config-name drafter common.user_dir={PLUGIN} "
    options += f"task.data={toy_model_dir.data} checkpoint.save_dir={tmp_path} "
    options += f"model.encoder_from={toy_model_dir.checkpoint} "
    options += (
        "task.source_lang=src task.target_lang=tgt dataset.validate_interval_updates=4 "
        "ema.store_ema=true ema.ema_decay=0.9 optimization.lr=[0.01] lr_scheduler.warmup_updates=1"
    )
    for updates in (4, 6):
        length = f"optimization.max_update={updates}"
        run_cli("fairseq-hydra-train", *options.split(), length, cwd=tmp_path)
    path = tmp_path / "checkpoint_last.pt"
    state = read_checkpoint(path)
    assert (state["cfg"]["common"]["bf16"], state["cfg"]["common"]["tpu"]) == (
        True,
        False,
    )
    assert state["optimizer_history"][-1]["num_updates"] == 6
    assert state["cfg"]["model"]["block_size"] == 10
    assert math.isfinite(state["extra_state"]["best"])
    model = state["model"]
    average = state["extra_state"]["ema"]
    trained = model["decoder.mask_embedding"]  # fairseq saves single precision
    assert torch.equal(trained, trained.bfloat16().float())
    assert not torch.equal(average["decoder.mask_embedding"].float(), trained)
    assert torch.equal(average["encoder_fingerprint"], model["encoder_fingerprint"])
    for weights in (model, average):
        assert equals_the_verifiers_encoder(
            weights, read_checkpoint(toy_model_dir.checkpoint)["model"]
        )
    loaded = checkpoint_utils.load_ema_from_checkpoint(str(path))["model"]
    assert torch.equal(
        loaded["decoder.mask_embedding"].float(),
        average["decoder.mask_embedding"].float(),
    )


@pytest.mark.parametrize(
    "options, message",
    [
        ({"left_pad_target": True}, "--left-pad-target"),
        ({"blocks_per_sentence": 0}, "--blocks-per-sentence 0"),
    ],
)
def test_refused_options(options: dict[str, Any], message: str) -> None:
    words = dictionary(5)
    config = BlockDraftingConfig(data="none", **{"left_pad_target": False, **options})
    with refused_with(message):
        BlockDraftingTask(config, words, words)


def test_what_the_task_does_not_do() -> None:
    words = dictionary(5)
    config = BlockDraftingConfig(data="none", left_pad_target=False)
    task = BlockDraftingTask(config, words, words)
    refused = r"Dataset not found: dev .*: no such split; check the data folder"
    with refused_with(refused):
        task.load_dataset("dev")
    with refused_with(r"leave out --eval-bleu; validation reports"):
        task.build_generator([], None)  # --eval-bleu, too
