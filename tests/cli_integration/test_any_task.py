"""Tasks beside `translation`: each one's own fairseq-generate, with a beam of one and of five, is the oracle."""

import json
import re
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from fairseq_aggdec import load
from fairseq_aggdec.errors import AggdecError
from tests.cli_integration.correction import AT_THE_END, PLUGIN, assert_same_hypotheses, assert_same_lists, at_once
from tests.helpers import TRAINING, ToyModel, generate_here, parse_generate, run_cli

SIZES = (
    "--encoder-layers 1 --decoder-layers 1 --encoder-embed-dim 64 --decoder-embed-dim 64 --encoder-ffn-embed-dim 128 "
    "--decoder-ffn-embed-dim 128 --encoder-attention-heads 2 --decoder-attention-heads 2 --max-source-positions 64 "
    "--max-target-positions 64 --dropout 0"
).split()
TEXT = ["--encoder-learned-pos", "--decoder-learned-pos", "--share-all-embeddings"]


class Kind(NamedTuple):
    """A task of fairseq, with what its command lines need."""

    task: str
    model: str
    """options of the architecture"""
    options: str
    """of the task, for training and decoding"""
    updates: int = 300
    lr: float = 0.005


OWN = """
from dataclasses import dataclass, field
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask

@dataclass
class MyConfig(TranslationConfig):
    never: str = field(default="", metadata={"help": "a word that no output has"})

@register_task("my_task", dataclass=MyConfig)
class MyTask(TranslationTask):
    def build_generator(self, models, args, extra_gen_cls_kwargs=None, **unused):
        extra = {**(extra_gen_cls_kwargs or {}), "tokens_to_suppress": (self.cfg.never,)}
        return super().build_generator(models, args, extra_gen_cls_kwargs=extra)
"""
SPEECH = Kind(
    "speech_to_text",
    "--arch s2t_transformer_xs --conv-channels 32 --label-smoothing 0.1 --criterion "
    "label_smoothed_cross_entropy --skip-invalid-size-inputs-valid-test",
    "",
    updates=120,
)
KINDS = {
    "m2m": Kind(
        "translation_multi_simple_epoch",
        "--arch transformer",
        "--langs src,tgt --lang-pairs src-tgt --encoder-langtok src --decoder-langtok",
        lr=0.003,
    ),
    "mbart": Kind("translation_from_pretrained_bart", "--arch mbart_base", "--langs src,tgt -s src -t tgt", lr=0.002),
    "multilingual": Kind(
        "multilingual_translation",
        "--arch multilingual_transformer",
        "--lang-pairs src-tgt --encoder-langtok tgt --decoder-langtok",
    ),
}


def train(kind: Kind, data: Path, folder: Path) -> Path:
    """fairseq's own training; returns the checkpoint."""
    saving = ["--save-dir", folder, "--no-epoch-checkpoints", "--disable-validation", *AT_THE_END]
    size = ["--lr", kind.lr, "--max-tokens", 500, "--max-update", kind.updates, "--user-dir", PLUGIN]
    options = [*kind.model.split(), *kind.options.split(), *SIZES, *([] if kind is SPEECH else TEXT)]
    run_cli("fairseq-train", data, "--task", kind.task, *options, *TRAINING, *size, *saving)
    return folder / "checkpoint_last.pt"


def decode(kind: Kind, data: Path, path: Path, decoding: str | None, *options: object) -> str:
    """fairseq-generate by the plugin's task, or by fairseq's own where `decoding` is None."""
    task = ["--task", kind.task] if decoding is None else ["--task", f"aggressive_{kind.task}", "--decoding", decoding]
    own = [] if kind is SPEECH else [*kind.options.split(), "-s", "src", "-t", "tgt"]
    return generate_here(data, "--path", path, "--user-dir", PLUGIN, "--cpu", *task, *own, *options)


def same_as_stock(kind: Kind, data: Path, path: Path, modes: dict[str, int], size: int) -> str:
    """Check modes with their batch sizes, and a beam, against stock; returns the output of the last mode."""
    stock = decode(kind, data, path, None, "--batch-size", size, "--beam", 1)
    for mode, own in modes.items():
        found = decode(kind, data, path, mode, "--batch-size", own, "--print-step")
        assert_same_hypotheses(found, stock)
    lists = ["--beam", 5, "--nbest", 5, "--batch-size", size]
    assert_same_lists(decode(kind, data, path, "aggressive-beam", *lists), decode(kind, data, path, None, *lists), 5)
    return found


@pytest.mark.parametrize("name", KINDS)
def test_text(name: str, correction_data: Path, tmp_path: Path) -> None:
    """Many drafts are accepted; a language token or its EOS costs no iteration."""
    kind = KINDS[name]
    path = train(kind, correction_data, tmp_path)
    same_as_stock(kind, correction_data, path, {"greedy": 16, "aggressive": 16}, 16)
    sentences = parse_generate(same_as_stock(kind, correction_data, path, {"iad": 1}, 1))
    found = sentences.values()
    assert 0 < sum(sentence.steps or 0 for sentence in found) < 0.6 * sum(len(s.positional) for s in found)
    assert sum(sentence.steps == 1 for sentence in found) > 3

    model = load(path, correction_data, source_lang="src", target_lang="tgt", task=kind.task, device="cpu")
    lines = (correction_data.parent / "test.src").read_text(encoding="utf-8").splitlines()
    expected = [" ".join(sentences[number].tokens) for number in range(len(lines))]
    assert [result.text for result in model.decode(lines, mode="iad")] == expected


def make_speech(folder: Path) -> Path:
    """Words as four frames each, with noise; target dictionary and configuration beside them."""
    rng = np.random.default_rng(1)
    voices = rng.normal(size=(12, 4, 8))
    for split, count in (("train", 120), ("test", 20)):
        rows = ["id\taudio\tn_frames\ttgt_text"]
        for number in range(count):
            words = rng.integers(12, size=rng.integers(1, 7))
            frames = np.concatenate([voices[word] for word in words])
            name = f"{split}{number}.npy"
            np.save(folder / name, (frames + 0.1 * rng.normal(size=frames.shape)).astype(np.float32))
            rows.append(f"{split}{number}\t{name}\t{len(frames)}\t{' '.join(f'w{word}' for word in words)}")
        (folder / f"{split}.tsv").write_text("\n".join(rows) + "\n")
    (folder / "dict.txt").write_text("".join(f"w{word} 1\n" for word in range(12)))
    (folder / "config.yaml").write_text(f"vocab_filename: dict.txt\naudio_root: {folder}\ninput_feat_per_channel: 8\n")
    return folder


def test_speech(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = make_speech(tmp_path)
    path = train(SPEECH, data, tmp_path / "model")
    for size in (1, 16):  # the scores of speech depend on the batch
        same_as_stock(SPEECH, data, path, {"greedy": size}, size)
    assert "fairseq's own" not in caplog.text, "the engine computes the decoder"
    stats = tmp_path / "stats.jsonl"
    found = decode(SPEECH, data, path, "greedy", "--int8", "--decoding-stats", stats, "--retain-iter-history")
    records = [json.loads(line) for line in stats.read_text().splitlines()]
    assert len({record["output_length"] for record in records}) > 3, "outputs differ"
    assert records[0]["source_length"] % 4 == 0, "frames"
    assert {record["id"]: record["output_length"] for record in records} == {
        number: len(sentence.tokens) for number, sentence in parse_generate(found).items()
    }
    with pytest.raises(AggdecError, match="--decoding aggressive drafts from the source's text"):
        decode(SPEECH, data, path, "aggressive")


def test_a_task_that_no_one_here_knows(correction_model: ToyModel, tmp_path: Path) -> None:
    """By the lines of docs/options.md, in processes that know only the other user directory."""
    page = (PLUGIN.parent / "docs/options.md").read_text(encoding="utf-8")
    [lines] = [code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "MyTask" in code]
    user = tmp_path / "of_mine"
    user.mkdir()
    (user / "my_task.py").write_text(OWN)
    (user / "__init__.py").write_text(lines)
    command = [
        correction_model.data,
        "--path",
        correction_model.checkpoint,
        "--user-dir",
        user,
        "--cpu",
        "--never",
        "ba",
    ]
    ours = ["--task", "aggressive_my_task", "--decoding", "iad", "--print-step", "--batch-size", 1]
    kinds = (["--task", "my_task", "--beam", 1], ours)
    runs = at_once(*(partial(run_cli, "fairseq-generate", *command, "--cpu", *kind) for kind in kinds))
    stock, found = (run.stdout for run in runs)
    assert_same_hypotheses(found, stock)
    sentences = parse_generate(found).values()
    assert not any("ba" in sentence.tokens for sentence in sentences)
    assert any("ba" in sentence.source.split() for sentence in sentences)
    assert sum(sentence.steps or 0 for sentence in sentences) < 0.6 * sum(len(one.positional) for one in sentences)
