"""fairseq's commands on the device: training in half precision, and decoding with what comes of it."""

import math
import shutil
from pathlib import Path

import pytest
import torch

from fairseq_aggdec.demo.shipped import SHIPPED
from fairseq_aggdec.lab.verify.differences import NEAR_TIES, first_difference
from tests.support.helpers import PLUGIN, Generated, parse_generate, run_cli

MT = SHIPPED["mt"].folder


@pytest.fixture
def where(device: torch.device) -> list[str]:
    """Options that choose the device."""
    return ["--cpu"] if device.type == "cpu" else []


def check(
    found: dict[int, Generated], expected: dict[int, Generated], precision: str
) -> None:
    """Outputs are equal, in half precision but for near-ties: the first tokens that differ have much the same score."""
    assert found.keys() == expected.keys()
    for number, wanted in expected.items():
        place = first_difference(wanted.tokens, found[number].tokens)
        if place is not None:
            gap = math.log(2) * abs(
                wanted.positional[place] - found[number].positional[place]
            )
            assert gap < NEAR_TIES.get(precision, 0), (
                number,
                place,
                wanted,
                found[number],
            )


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few pairs in the shipped model's dictionaries, binarised."""
    folder = tmp_path_factory.mktemp("pairs")
    for split in ("train", "valid", "test"):
        for language in ("en", "de"):
            shutil.copy(MT / "sentences.txt", folder / f"{split}.{language}")
    prefixes = [
        f"--{split}pref={folder / split}" for split in ("train", "valid", "test")
    ]
    dictionaries = ["--srcdict", MT / "dict.en.txt", "--tgtdict", MT / "dict.de.txt"]
    run_cli(
        "fairseq-preprocess",
        "-s",
        "en",
        "-t",
        "de",
        *prefixes,
        *dictionaries,
        "--destdir",
        folder / "bin",
    )
    return folder / "bin"


TRAININGS = {
    "gad": f"--task block_drafting --arch nar_drafter_small --block-size 6 --encoder-from {MT}/model.pt "
    f"--freeze-encoder --decoder-from {MT}/model.pt --decoder-layers 2 --max-source-positions 256 "
    "--max-target-positions 256 --criterion glancing_block_loss",
    "blockwise": f"--arch blockwise_transformer --base-checkpoint {MT}/model.pt --identity-head --freeze-base "
    "--max-source-positions 256 --max-target-positions 256 --block-heads 4 --criterion blockwise_loss",
}


@pytest.mark.parametrize("decoding", list(TRAININGS))
def test_training_in_half_precision(
    decoding: str, pairs: Path, where: list[str], device: torch.device, tmp_path: Path
) -> None:
    """What comes of it decodes to the output of greedy."""
    options = "--optimizer adam --lr 0.0003 --clip-norm 1 --max-tokens 2000 --seed 1 --no-epoch-checkpoints".split()
    half = ["--fp16"] if device.type == "cuda" else []
    length = [
        "--max-update",
        6,
        "--log-format",
        "simple",
        "--log-interval",
        1,
        "--dropout",
        "0.0",
    ]
    trained = run_cli(
        "fairseq-train", pairs, "--user-dir", PLUGIN, "-s", "en", "-t", "de", *TRAININGS[decoding].split(),
        *options, *length, *half, *where, "--save-dir", tmp_path,
    )  # fmt: skip
    assert "nan" not in trained.stdout.lower()
    checkpoint = tmp_path / "checkpoint_last.pt"
    models = (
        ["--path", MT / "model.pt", "--drafter-path", checkpoint]
        if decoding == "gad"
        else ["--path", checkpoint]
    )
    outputs = []
    for mode in ("greedy", decoding):
        common = ["--user-dir", PLUGIN, "--task", "aggressive_translation", "-s", "en", "-t", "de",
                  "--max-len-b", 20]  # fmt: skip
        given = models if mode == decoding else models[:2]
        done = run_cli(
            "fairseq-generate",
            pairs,
            *common,
            *given,
            "--decoding",
            mode,
            *half,
            *where,
        )
        outputs.append(parse_generate(done.stdout))
    assert len(outputs[0]) > 10
    check(outputs[1], outputs[0], "fp16" if half else "fp32")
