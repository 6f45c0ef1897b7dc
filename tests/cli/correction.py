"""A correction task that a tiny model learns in seconds, and what its tests share."""

import random
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.helpers import (
    PLUGIN,
    TRAINING,
    ToyModel,
    binarised,
    parse_generate,
    run_cli,
)

Process = subprocess.CompletedProcess[str]

WORDS = [consonant + vowel for consonant in "bdfgklmn" for vowel in "aeiou"]
SENTENCES = 25  # of the test set
VALIDATED = 12
TRAINED_ON = 600
LONGEST = 64  # positions of the model, EOS included
BLOCK_SIZE = 6  # of the drafter
HEADS = 4

# not after every epoch of a few updates
AT_THE_END = "--validate-interval 1000 --save-interval 1000".split()
MODEL = (
    "--arch transformer --encoder-layers 1 --decoder-layers 1 --encoder-embed-dim 64 --decoder-embed-dim 64 "
    "--encoder-ffn-embed-dim 128 --decoder-ffn-embed-dim 128 --encoder-attention-heads 2 --decoder-attention-heads 2 "
    "--encoder-learned-pos --decoder-learned-pos --share-all-embeddings --max-source-positions 64 "
    "--max-target-positions 64 --lr 0.005 --max-tokens 500 --save-interval-updates 100"
).split() + AT_THE_END
DRAFTER = (
    "--task block_drafting --arch nar_drafter --criterion glancing_block_loss --blocks-per-sentence 4 --max-update 80 "
    f"--disable-validation --block-size {BLOCK_SIZE}"
).split()
BLOCKWISE = (
    f"--arch blockwise_transformer --criterion blockwise_loss --identity-head --freeze-base --block-heads {HEADS} "
    "--own-hidden --max-update 160 --log-format simple --best-checkpoint-metric accepted "
    "--maximize-best-checkpoint-metric"
).split()
WITHOUT_LONG = "--max-source-positions 20 --skip-invalid-size-inputs-valid-test".split()
"""leaves one sentence out, with which fairseq's search takes most of its time"""
EARLIER = "checkpoint_*_100.pt"
"""a state of the model before the last one, in the same folder"""


def make_correction_data(folder: Path) -> Path:
    """Sentences in which one word of ten carries an error (`ba` -> `bax`), binarised; the target has none."""
    rng = random.Random(1)
    pairs = {}
    counts = {"train": TRAINED_ON, "valid": VALIDATED, "test": SENTENCES}
    for split, count in counts.items():
        lengths = [1, LONGEST - 2, *(rng.randint(1, 8) for _ in range(count - 2))]
        targets = [rng.choices(WORDS, k=length) for length in lengths]
        sources = [
            [word + "x" if rng.random() < 0.1 else word for word in words]
            for words in targets
        ]
        pairs[split] = list(zip(sources, targets, strict=True))
    return binarised(folder, pairs)


def train_drafter(verifier: ToyModel, folder: Path) -> Path:
    """A drafter on the frozen encoder of a correction model, started from its decoder; returns its checkpoint."""
    model = verifier.checkpoint
    start = f"--encoder-from {model} --decoder-from {model} --freeze-encoder"
    _train(verifier.data, folder, *DRAFTER, *start.split())
    return folder / "checkpoint_last.pt"


def train_heads(base: ToyModel, folder: Path) -> Path:
    """Proposal heads on a frozen copy of a correction model, which is gone afterwards; no checkpoint needs it."""
    copy = folder / "base.pt"
    copy.write_bytes(base.checkpoint.read_bytes())
    _train(base.data, folder, *BLOCKWISE, "--base-checkpoint", copy)
    copy.unlink()
    return folder / "checkpoint_last.pt"


def _train(data: Path, folder: Path, *options: object) -> None:
    saving = ["--save-dir", folder, "--no-epoch-checkpoints", *AT_THE_END]
    size = ["--lr", 0.005, "--max-tokens", 1000, "--user-dir", PLUGIN]
    run_cli("fairseq-train", data, *TRAINING, *size, *saving, *options)


def generate(model: ToyModel, decoding: str | None, *options: object) -> Process:
    """fairseq-generate with the plugin: under `decoding`, or stock with a beam of one where that is None."""
    return run_cli(
        "fairseq-generate", model.data, *_arguments(model, decoding), *options
    )


def generate_here(model: ToyModel, decoding: str | None, *options: object) -> str:
    """What it prints."""
    return generate(model, decoding, *options).stdout


def interact(
    model: ToyModel, decoding: str | None, *options: object, stdin: str | bytes = ""
) -> Process:
    """fairseq-interactive with the plugin."""
    arguments = ["-s", "src", "-t", "tgt", *_arguments(model, decoding), *options]
    return run_cli("fairseq-interactive", model.data, *arguments, stdin=stdin)


def _arguments(model: ToyModel, decoding: str | None) -> list[object]:
    task = ["--task", "translation", "--beam", 1]
    if decoding is not None:
        task = ["--task", "aggressive_translation", "--decoding", decoding]
    return ["--path", model.checkpoint, "--user-dir", PLUGIN, *task]


def assert_same_hypotheses(
    output: str, reference: str, tolerance: float = 1e-3
) -> None:
    """Tokens of all H- lines equal, and scores close; they are logarithms to base 2."""
    found = parse_generate(output)
    expected = parse_generate(reference)
    assert expected
    assert {number: mine.tokens for number, mine in found.items()} == {
        n: own.tokens for n, own in expected.items()
    }
    for number, own in expected.items():
        assert found[number].score == pytest.approx(own.score, abs=tolerance)
        assert found[number].positional == pytest.approx(
            own.positional, abs=10 * tolerance
        )


def assert_same_lists(output: str, reference: str, hypotheses: int) -> None:
    """As many n-best lists of so many hypotheses each, equal in texts and order, with the same scores."""
    found, expected = map(_lists, (output, reference))
    assert {
        number: len(texts) for number, (texts, _) in expected.items()
    } == dict.fromkeys(expected, hypotheses)
    assert {number: texts for number, (texts, _) in found.items()} == {
        n: texts for n, (texts, _) in expected.items()
    }
    for number, (_, scores) in expected.items():
        assert found[number][1] == pytest.approx(scores, abs=1e-5)


def _lists(output: str) -> dict[int, tuple[list[str], list[float]]]:
    """Texts and scores of the H- lines, by sentence."""
    lists: dict[int, tuple[list[str], list[float]]] = {}
    for number, score, text in re.findall(
        r"^H-(\d+)\t(\S+)\t(.*)$", output, re.MULTILINE
    ):
        texts, scores = lists.setdefault(int(number), ([], []))
        texts.append(text)
        scores.append(float(score))
    assert lists
    return lists


def summaries(text: str) -> list[dict[str, float]]:
    """The figures of every summary line in a log."""
    pattern = (
        r"--decoding [\w+]+: (\d+) sentences, ([\d.]+) iterations/sentence, ([\d.]+) mean accepted tokens, "
        r"acceptance rate ([\d.]+)%"
    )
    names = ("sentences", "iterations", "mean_accepted", "acceptance_rate")
    return [
        dict(zip(names, map(float, figures), strict=True))
        for figures in re.findall(pattern, text)
    ]
