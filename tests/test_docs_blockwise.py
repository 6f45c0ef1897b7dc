"""docs/blockwise.md: fairseq takes its commands as they stand, and the defaults of its tables are those of the code."""

import re
import shlex
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from fairseq import options as fairseq_options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

import fairseq_aggdec
from fairseq_aggdec.cli import bench
from fairseq_aggdec.criterions.blockwise_loss import BlockwiseLossConfig
from fairseq_aggdec.lab.benchmarking.modes import parse_modes
from fairseq_aggdec.models.blockwise_transformer import BlockwiseTransformerConfig
from fairseq_aggdec.tasks.aggressive_translation import AggressiveTranslationConfig, check_options
from tests.random_blockwise import on_base, save_base
from tests.random_models import dictionary, random_model

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/blockwise.md").read_text(encoding="utf-8")
DEFAULTS: dict[str, Any] = {
    field.name: field.default
    for group in (AggressiveTranslationConfig, BlockwiseLossConfig, BlockwiseTransformerConfig)
    for field in fields(group)
}
PLUGIN = ["--user-dir", "fairseq_aggdec"]


def commands(program: str) -> list[list[str]]:
    """The arguments of a program's commands on the page."""
    lines = "".join(re.findall(r"```bash\n(.*?)```", PAGE, flags=re.DOTALL)).replace("\\\n", " ").splitlines()
    words = len(program.split())
    return [shlex.split(line)[words:] for line in lines if line.startswith(f"{program} ")]


@pytest.fixture
def checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the page's names stand for: a base model, and heads on it where the first command leaves them."""
    fairseq_aggdec.register()
    words = dictionary(20)
    base = save_base(random_model(1, words, words), tmp_path / "base.pt")
    shape = {"block_heads": 8, "identity_head": True, "own_hidden": True}
    (tmp_path / "heads").mkdir()
    heads = on_base(base, words, words, **shape)
    save_base(heads, tmp_path / "heads/checkpoint_best.pt", arch="blockwise_transformer", **shape)
    monkeypatch.chdir(tmp_path)
    return {"$CHECKPOINT": str(base), "$DATA_BIN": "data-bin"}


def read(parser: Any, command: list[str], names: dict[str, str]) -> Any:
    place = command.index("--user-dir")
    assert command[place : place + 2] == PLUGIN
    given = [names.get(word, word) for word in (*command[:place], *command[place + 2 :])]
    return fairseq_options.parse_args_and_arch(parser, given)


def test_trainings_are_read(checkpoints: dict[str, str]) -> None:
    frozen, fine_tuned = (
        read(fairseq_options.get_training_parser(), command, checkpoints) for command in commands("fairseq-train")
    )
    assert frozen.freeze_base
    assert not hasattr(fine_tuned, "freeze_base")  # which takes its default later
    assert frozen.best_checkpoint_metric == "accepted"
    assert frozen.maximize_best_checkpoint_metric
    assert fine_tuned.best_checkpoint_metric == "loss"
    assert fine_tuned.heads_per_step == fine_tuned.block_heads  # head 1 in every update
    for args in (frozen, fine_tuned):
        assert (args.task, args.criterion) == ("translation", "blockwise_loss")
        assert (args.block_heads, args.identity_head, args.own_hidden) == (8, True, True)
        assert args.decoder_embed_dim == 16  # the checkpoint's


def test_decodings_are_read(checkpoints: dict[str, str]) -> None:
    found = []
    for command in commands("fairseq-generate"):
        args = read(fairseq_options.get_generation_parser(), command, checkpoints)
        task = convert_namespace_to_omegaconf(args).task
        check_options(task)
        found.append((task.decoding, task.block_size, task.top_beta))
    assert found == [("blockwise", 0, None), ("blockwise", 4, 2)]


def test_the_benchmark_is_read() -> None:
    [command] = commands("aggdec bench")
    args = bench._parser().parse_args(command)
    assert [mode.top_beta for mode in parse_modes(args.modes)] == [None, None, None, 2, 3]
    assert args.block_size == 8


def test_defaults() -> None:
    rows = re.findall(r"^\| `--([a-z-]+)[^`]*` \| ([^|]+) \|", PAGE, flags=re.MULTILINE)
    assert len(rows) > 12
    for name, written in rows:
        default = DEFAULTS[name.replace("-", "_")]
        assert written == ("none" if default is None else "off" if default is False else str(default)), name
