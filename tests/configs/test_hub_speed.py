"""The script that times imported models, without the programs beside which it does so."""

import importlib
import shutil
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.hub.tokenizers import read_tokenizer
from fairseq_aggdec.lab.bench.record import load_record
from tests.hub.imported_models import MODELS

T5 = MODELS / "flan_t5"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("transformers", "ctranslate2.converters"):
        monkeypatch.setitem(sys.modules, name, Mock())
    return importlib.reload(importlib.import_module("measuring.hub_speed"))


def test_a_tokenizer_is_filled_up_to_the_size_of_the_model(
    script: Any, tmp_path: Path
) -> None:
    script.write_t5(tmp_path, T5, {})
    tokens = read_tokenizer(tmp_path).tokens
    assert len(set(tokens)) == 32_128
    assert tokens[:1000] == read_tokenizer(T5).tokens


def test_all_read_sources_with_eos_and_what_is_refused_gets_a_line(
    script: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = script.transformers.AutoModelForSeq2SeqLM.from_pretrained()
    model.generate.side_effect = lambda input_ids, **options: input_ids
    script.TransformersConverter().convert = lambda folder: shutil.copytree(T5, folder)
    monkeypatch.setattr(
        script, "TranslatorProcess", Mock(side_effect=AggdecError("no such type"))
    )
    shutil.copytree(T5, tmp_path / "base")
    record = tmp_path / "record.json"
    command = f"main --model flan-t5-base --tokenizer {T5} --folder {tmp_path} --json {record} --sentences 9 --length 8"
    monkeypatch.setattr(sys, "argv", command.split())
    script.main()
    assert "ctranslate2:greedy@int8 refused: no such type" in capsys.readouterr().err
    assert (
        '"add_source_eos": true' in (tmp_path / "ctranslate2/config.json").read_text()
    )
    given = model.generate.call_args.kwargs
    assert given["input_ids"][0, 8] == given["forced_eos_token_id"] == 1
    runs = {run.mode: run.counts for run in load_record(record).runs}
    assert runs["beam1"].identical == runs["iad"].identical == 9
    assert runs["iad"].accepted
    assert runs["transformers:greedy"].identical == 0
