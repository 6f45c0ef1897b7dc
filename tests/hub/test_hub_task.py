"""Imported models on data and text: sources and outputs have the form that the model knows, wherever it decodes."""

import shlex
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY

from fairseq_aggdec import load
from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.cli.verbs import parse
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.hub.importing import imported
from tests.support.helpers import PLUGIN, run_cli

MODELS = Path(__file__).parent / "models"
PAIR = ("eng_Latn", "deu_Latn")
TEXTS = ["She have two brother.", "The old man reads a book.", "Where do you live?"]


def test_the_commands_that_an_import_prints_run_and_search_as_load_hub_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("text", "train", "valid"):
        Path(f"{name}.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    aggdec(["import-hf", str(MODELS / "bart"), "--out", "bart"])
    translate, binarize, generate, bench, drafter = capsys.readouterr().out.splitlines()
    for line in (translate, binarize, f"{bench} --repeats 1 --no-profile --no-memory"):
        aggdec(shlex.split(line)[1:])
    parse(shlex.split(drafter)[1:])
    printed = run_cli(*shlex.split(generate.replace("$(aggdec user-dir)", str(PLUGIN))), cwd=tmp_path).stdout
    assert "BLEU" not in printed, "there are no references"
    outputs = dict(line.split("\t")[::2] for line in printed.splitlines() if line.startswith("D-"))
    model = load.hub("bart")
    own, greedy, alone, short = (
        model.decode(TEXTS, **given) for given in ({}, {"mode": "greedy"}, {"beam": 1}, {"max_len_b": 5})
    )
    assert [outputs[f"D-{number}"] for number in range(3)] == [one.text for one in own]
    assert [one.text for one in alone] == [one.text for one in greedy] != [one.text for one in own]
    assert max(len(one.sentences[0].tokens) for one in short) == 5
    stock = [[one.text for one in load.hub("bart").decode(TEXTS, "beam", beam=beam)] for beam in (1, 3, 1)]
    assert stock == [[one.text for one in model.decode(TEXTS, "beam", beam=beam)] for beam in (1, 3, 1)]
    # drafters learn to read what the model reads, and are tried out with empty targets
    for name, target in {"hub_translation": None, "block_drafting": [0, 2]}.items():
        config = TASK_DATACLASS_REGISTRY[name](data="data-bin", dataset_impl=None, required_seq_len_multiple=1)
        task = TASK_REGISTRY[name].setup_task(config)
        task.load_dataset("test")
        pair = task.dataset("test")[1]
        assert pair["source"].tolist() == [0, *model.encode(TEXTS[1]).tolist()]
        assert (pair["target"] if target is None else pair["target"].tolist()) == target
        config.num_batch_buckets = 2
        with pytest.raises(AggdecError, match=r"^--num-batch-buckets: cannot be used on an imp"):
            task.load_dataset("test")


def test_languages_go_by_name_and_processes_import_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with ThreadPoolExecutor(2) as threads:
        assert len({*threads.map(imported, 2 * [MODELS / "nllb"])}) == 1
    aggdec(["translate", "--model", f"{MODELS / 'nllb'}", "-s", PAIR[0], "-t", PAIR[1], "--mode", "iad", TEXTS[1]])
    found = load.hub(MODELS / "nllb", *PAIR).decode(TEXTS[1], "greedy")
    assert capsys.readouterr().out == f"{found.text}\n"
    assert (found.sentences[0].tokens[0], PAIR[1] in found.text) == (PAIR[1], False)
    with pytest.raises(AggdecError, match=r"^-t deu: the model has no such language; .*deu_Latn"):
        load.hub(MODELS / "nllb", PAIR[0], "deu")
    with pytest.raises(AggdecError, match=r"several languages \(.*\): give -t "):
        load.hub(MODELS / "marian_multi")
    with pytest.raises(AggdecError, match=r"^-t en: the model has no such language; its only one is de$"):
        load.hub(MODELS / "marian_two", "de", "en")
    monkeypatch.setenv("XDG_CACHE_HOME", f"{__file__}")
    with pytest.raises(AggdecError, match=r"cannot be written \(.*\); set XDG_CACHE_HOME to another folder$"):
        load.hub(MODELS / "nllb", *PAIR)
