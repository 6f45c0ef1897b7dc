"""fairseq's commands on the device: training in half precision, and decoding with what comes of it."""

import math
import shutil
from pathlib import Path

import pytest
import torch

from fairseq_aggdec.demo.shipped import SHIPPED
from fairseq_aggdec.lab.verify.differences import NEAR_TIES, first_difference
from tests.support.helpers import (
    PLUGIN,
    Generated,
    generate_here,
    parse_generate,
    run_cli,
)

MT = SHIPPED["mt"].folder


@pytest.fixture
def where(device: torch.device) -> str:
    """The option that chooses the device."""
    return "--cpu" if device.type == "cpu" else ""


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
    texts = f"--trainpref {folder}/train --validpref {folder}/valid --testpref {folder}/test"
    dictionaries = f"--srcdict {MT}/dict.en.txt --tgtdict {MT}/dict.de.txt"
    options = f"-s en -t de {texts} {dictionaries} --destdir {folder}/bin"
    run_cli("fairseq-preprocess", *options.split())
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
    decoding: str, pairs: Path, where: str, device: torch.device, tmp_path: Path
) -> None:
    """What comes of it decodes to the output of greedy."""
    common = f"{pairs} --user-dir {PLUGIN} -s en -t de {where}"
    half = "--fp16" if device.type == "cuda" else ""
    options = (
        "--optimizer adam --lr 0.0003 --clip-norm 1 --max-tokens 2000 --seed 1 --no-epoch-checkpoints --max-update 6 "
        f"--log-format simple --log-interval 1 --dropout 0.0 --save-dir {tmp_path}"
    )
    training = f"{common} {half} {TRAININGS[decoding]} {options}"
    trained = run_cli("fairseq-train", *training.split())
    assert "nan" not in trained.stdout.lower()
    checkpoint = tmp_path / "checkpoint_last.pt"
    path = MT / "model.pt" if decoding == "gad" else checkpoint
    drafter = f" --drafter-path {checkpoint}" if decoding == "gad" else ""
    outputs = []
    for mode in ("greedy", decoding + drafter):
        task = f"--task aggressive_translation --max-len-b 20 --path {path} --decoding {mode}"
        printed = generate_here(*f"{common} {half} {task}".split())
        outputs.append(parse_generate(printed))
    assert len(outputs[0]) > 10
    check(outputs[1], outputs[0], "fp16" if half else "fp32")
