"""Speech, and a task that no one here knows; test_families.py has the tasks of several languages."""

import json
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from fairseq_aggdec.errors import AggdecError
from tests.cli.correction import AT_THE_END, PLUGIN, assert_same_hypotheses, assert_same_lists, at_once
from tests.support.helpers import TRAINING, ToyModel, generate_here, parse_generate, run_cli

SPEECH = (
    "--task speech_to_text --arch s2t_transformer_xs --conv-channels 32 --encoder-layers 1 --decoder-layers 1 "
    "--encoder-embed-dim 64 --decoder-embed-dim 64 --encoder-ffn-embed-dim 128 --decoder-ffn-embed-dim 128 "
    "--encoder-attention-heads 2 --decoder-attention-heads 2 --max-source-positions 64 --max-target-positions 64 "
    "--dropout 0 --label-smoothing 0.1 --criterion label_smoothed_cross_entropy "
    "--skip-invalid-size-inputs-valid-test --lr 0.005 --max-tokens 500 --max-update 120"
).split()
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


def decode(data: Path, path: Path, decoding: str | None, *options: object) -> str:
    """fairseq-generate by the plugin's task, or by fairseq's own where `decoding` is None."""
    task = ["--task", "speech_to_text"]
    if decoding is not None:
        task = ["--task", "aggressive_speech_to_text", "--decoding", decoding]
    return generate_here(data, "--path", path, "--user-dir", PLUGIN, "--cpu", *task, *options)


def test_speech(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data, path = make_speech(tmp_path), tmp_path / "model" / "checkpoint_last.pt"
    saving = ["--save-dir", path.parent, "--no-epoch-checkpoints", "--disable-validation", *AT_THE_END]
    run_cli("fairseq-train", data, *SPEECH, *TRAINING, *saving)
    for size in (1, 16):  # the scores of speech depend on the batch
        stock = decode(data, path, None, "--batch-size", size, "--beam", 1)
        assert_same_hypotheses(decode(data, path, "greedy", "--batch-size", size), stock)
        lists = ["--beam", 5, "--nbest", 5, "--batch-size", size]
        assert_same_lists(decode(data, path, "aggressive-beam", *lists), decode(data, path, None, *lists), 5)
    assert "fairseq's own" not in caplog.text, "the engine computes the decoder"
    stats = tmp_path / "stats.jsonl"
    found = decode(data, path, "greedy", "--int8", "--decoding-stats", stats, "--retain-iter-history")
    records = [json.loads(line) for line in stats.read_text().splitlines()]
    assert len({record["output_length"] for record in records}) > 3, "outputs differ"
    assert records[0]["source_length"] % 4 == 0, "frames"
    assert {record["id"]: record["output_length"] for record in records} == {
        number: len(sentence.tokens) for number, sentence in parse_generate(found).items()
    }
    with pytest.raises(AggdecError, match="--decoding aggressive drafts from the source's text"):
        decode(data, path, "aggressive")


def test_a_task_that_no_one_here_knows(correction_model: ToyModel, tmp_path: Path) -> None:
    """By the lines of docs/options.md, in processes that know only the other user directory."""
    page = (PLUGIN.parent / "docs/options.md").read_text(encoding="utf-8")
    [lines] = [code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "MyTask" in code]
    user = tmp_path / "of_mine"
    user.mkdir()
    (user / "my_task.py").write_text(OWN)
    (user / "__init__.py").write_text(lines)
    command = [correction_model.data, "--path", correction_model.checkpoint, "--user-dir", user, "--never", "ba"]
    ours = ["--task", "aggressive_my_task", "--decoding", "iad", "--print-step", "--batch-size", 1]
    kinds = (["--task", "my_task", "--beam", 1], ours)
    runs = at_once(*(partial(run_cli, "fairseq-generate", *command, "--cpu", *kind) for kind in kinds))
    stock, found = (run.stdout for run in runs)
    assert_same_hypotheses(found, stock)
    sentences = parse_generate(found).values()
    assert not any("ba" in sentence.tokens for sentence in sentences)
    assert any("ba" in sentence.source.split() for sentence in sentences)
    assert sum(sentence.steps or 0 for sentence in sentences) < 0.8 * sum(len(one.positional) for one in sentences)
