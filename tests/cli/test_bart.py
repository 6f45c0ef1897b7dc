"""fairseq's BART on the command line: decoded, shrunk, trained further."""

from pathlib import Path

import pytest

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.train.shrinking import layer_counts
from tests.cli.correction import PLUGIN, assert_same_hypotheses, assert_same_lists, generate_here
from tests.support.helpers import TRAINING, ToyModel, parse_generate, run_cli

SIZES = (
    "--encoder-embed-dim 64 --decoder-embed-dim 64 --encoder-ffn-embed-dim 128 --decoder-ffn-embed-dim 128 "
    "--encoder-attention-heads 2 --decoder-attention-heads 2 --max-source-positions 64 --max-target-positions 64 "
    "--dropout 0"
).split()
# as fairseq's recipe for summarization
RECIPE = (
    "--truncate-source --layernorm-embedding --share-all-embeddings --share-decoder-input-output-embed "
    "--task translation --lr 0.003 --max-tokens 1000 "
    "--no-epoch-checkpoints --disable-validation --required-batch-size-multiple 1 --skip-invalid-size-inputs-valid-test"
).split()
DEPTH = ["--encoder-layers", 3, "--decoder-layers", 3]
VALIDATION = ["--gen-subset", "valid"]


def train(data: Path, folder: Path, *options: object, updates: int) -> ToyModel:
    """fairseq-train by that recipe, with a name of the plugin for the architecture."""
    arguments = ["--user-dir", PLUGIN, "--arch", "bart_small", *SIZES, *TRAINING, *RECIPE]
    run_cli("fairseq-train", data, *arguments, "--save-dir", folder, "--max-update", updates, *options)
    return ToyModel(data, folder / "checkpoint_last.pt")


@pytest.fixture(scope="module")
def bart(correction_data: Path, tmp_path_factory: pytest.TempPathFactory) -> ToyModel:
    return train(correction_data, tmp_path_factory.mktemp("bart"), *DEPTH, updates=10)


def test_bart_and_a_shallow_one_decode_and_train_further(bart: ToyModel, tmp_path: Path) -> None:
    options = "--truncate-source --max-source-positions 12 --lenpen 2.0 --min-len 5 --max-len-b 12".split()
    stock = generate_here(bart, None, *VALIDATION, *options)
    assert_same_hypotheses(generate_here(bart, "iad", *VALIDATION, *options), stock)
    assert max(len(sentence.source.split()) for sentence in parse_generate(stock).values()) == 11  # and the end symbol
    beams = [*VALIDATION, "--beam", 4, "--nbest", 4, "--max-len-b", 12]
    assert_same_lists(generate_here(bart, "aggressive-beam", *beams), generate_here(bart, None, *beams), 4)
    path = tmp_path / "shallow.pt"
    aggdec(["shrink", str(bart.checkpoint), str(path), "--decoder-layers-to-keep", "0,2"])
    shallow = ToyModel(bart.data, path)
    stock = generate_here(shallow, None, *VALIDATION, "--max-len-b", 12)
    assert_same_hypotheses(generate_here(shallow, "iad", *VALIDATION, "--max-len-b", 12), stock)

    depth = ["--encoder-layers", 3, "--decoder-layers", 2, "--finetune-from-model", path]
    further = train(bart.data, tmp_path / "further", *depth, "--lr", 1e-6, updates=2)
    before, after = (read_checkpoint(model.checkpoint)["model"] for model in (shallow, further))
    assert layer_counts(after) == {"encoder": 3, "decoder": 2}
    for name, value in before.items():
        if value.is_floating_point():
            assert (after[name] - value).abs().max() < 1e-4, f"{name} did not come from the shallow model"
    assert any(not after[name].equal(value) for name, value in before.items())
