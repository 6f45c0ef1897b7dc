"""What is said of folders without data."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.tasks.aggressive_translation import AggressiveTranslationConfig, AggressiveTranslationTask
from fairseq_aggdec.tasks.block_drafting import BlockDraftingConfig, BlockDraftingTask
from fairseq_aggdec.tasks.data_folder import check_data
from tests.support.random_models import dictionary


def config(data: object, source: str | None = None, target: str | None = None) -> SimpleNamespace:
    return SimpleNamespace(data=data and str(data), source_lang=source, target_lang=target)


def test_a_folder_of_fairseq_preprocess(tmp_path: Path) -> None:
    for name in ("dict.a.txt", "dict.b.txt", "train.a-b.a.bin", "train.a-b.a.idx"):
        (tmp_path / name).touch()
    check_data(config(tmp_path))
    check_data(config(tmp_path, "a", "b"))
    check_data(config(f"{tmp_path}:/elsewhere", "a", "b"))
    with pytest.raises(AggdecError, match=r"has no dict\.c\.txt; check --source-lang"):
        check_data(config(tmp_path, "a", "c"))

    with pytest.raises(AggdecError, match="no data folder given"):
        check_data(config(None))
    with pytest.raises(AggdecError, match="/nowhere: no such data folder"):
        check_data(config("/nowhere"))


def test_a_split_that_is_not_there(tmp_path: Path) -> None:
    words = dictionary(5)
    options: dict[str, Any] = {"data": str(tmp_path), "source_lang": "a", "target_lang": "b"}
    decoding = AggressiveTranslationTask(AggressiveTranslationConfig(**options), words, words)
    training = BlockDraftingTask(BlockDraftingConfig(**options, eval_bleu=False, left_pad_target=False), words, words)
    for task in (decoding, training):
        with pytest.raises(AggdecError, match=r"Dataset not found: dev .*: no such split; check the data folder"):
            task.load_dataset("dev")
