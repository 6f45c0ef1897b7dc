"""Images from an .npz file to pictures: fairseq-train, fairseq-generate and aggdec super-resolve."""

from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from PIL import Image
from super_resolution.decoding import load

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.bench.record import load_record
from tests.support.helpers import PLUGIN, TRAINING, run_cli
from tests.support.synthetic_images import make_images, write_npz

HEADS = 4
TASK = "--task super_resolution --grey --input-size 2 --output-size 6 --valid-images 4 --test-images 5".split()
BASE = (
    "--arch transformer --encoder-learned-pos --decoder-learned-pos --coordinate-positions --encoder-layers 1 "
    "--decoder-layers 1 --encoder-embed-dim 32 --decoder-embed-dim 32 --encoder-ffn-embed-dim 64 "
    "--decoder-ffn-embed-dim 64 --encoder-attention-heads 2 --decoder-attention-heads 2"
)
BLOCKWISE = (
    f"--arch blockwise_transformer --block-heads {HEADS} --identity-head --criterion blockwise_loss "
    f"--heads-per-step {HEADS} --base-checkpoint"
)
SAVING = "--no-epoch-checkpoints --max-update 40 --validate-interval 1000 --save-interval 1000"
TOKENS = 36


class Trained(NamedTuple):
    data: Path
    base: Path
    heads: Path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A plain Transformer of fairseq's, and heads on it."""
    folder = tmp_path_factory.mktemp("images")
    data = write_npz(folder / "images.npz", make_images(120))
    base, heads = (folder / name / "checkpoint_last.pt" for name in ("base", "heads"))
    for path, model in ((base, BASE.split()), (heads, [*BLOCKWISE.split(), base])):
        options = [
            *TASK,
            *model,
            *TRAINING,
            *SAVING.split(),
            "--lr",
            0.01,
            "--batch-size",
            16,
        ]
        run_cli(
            "fairseq-train",
            data,
            "--user-dir",
            PLUGIN,
            *options,
            "--save-dir",
            path.parent,
        )
    return Trained(data, base, heads)


def test_the_command_writes_pictures_and_measures(
    trained: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [
        "--path",
        trained.heads,
        "--output",
        tmp_path,
        "--repeats",
        1,
        "--accept-distance",
        12,
        "--pictures",
        7,
    ]
    aggdec(["super-resolve", *map(str, [trained.data, *options])])
    printed = capsys.readouterr().out
    assert "test of" in printed
    assert printed == (tmp_path / "table.md").read_text(encoding="utf-8")
    record = load_record(tmp_path / "record.json")
    runs = {run.mode: run.counts for run in record.runs}
    exact = runs["blockwise"]
    # lossless
    assert exact.same_pixels == 1.0
    assert (exact.identical, exact.tokens) == (5, 5 * (TOKENS + 1))
    blocks = {mode: run.mean_accepted_block or 0.0 for mode, run in runs.items()}
    assert blocks["greedy"] == 1
    assert 1 < blocks["blockwise"] <= blocks["approximate"] <= HEADS
    assert (record.sentences, record.source_tokens) == (5, 25)
    with pytest.raises(AggdecError, match="a model without proposal heads"):
        load(str(trained.base), str(trained.data))
    if not torch.cuda.is_available():
        with pytest.raises(
            AggdecError, match="--device cuda: PyTorch finds no CUDA device"
        ):
            load(str(trained.heads), str(trained.data), "cuda")
    with Image.open(tmp_path / "pictures.png") as picture:
        assert picture.size == (8 + 4 * 136, 8 + 5 * 136)
