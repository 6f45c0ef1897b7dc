"""Imported models on data and text: sources and outputs have the form that the model knows, wherever it decodes."""

import shlex
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY

from fairseq_aggdec import load
from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.cli.verbs import parse
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.options import Decoding
from fairseq_aggdec.hub.importing import imported
from fairseq_aggdec.hub.settings import Settings
from fairseq_aggdec.tasks.loading import batches_of
from tests.support.helpers import PLUGIN, run_cli
from tests.support.random_models import dictionary, random_network

MODELS = Path(__file__).parent / "models"
PAIR = ("eng_Latn", "deu_Latn")
TEXTS = ["She have two brother.", "The old man reads a book.", "Where do you live?"]


@pytest.mark.parametrize(
    ("form", "forced"),  # of BART, NLLB, NLLB in its older form, and a multilingual Marian
    [("<s> {text} </s>", "<s>"), ("{source} {text} </s>", "{target}"), ("{text} </s> {source}", "{target}"),
     ("{target} {text} </s>", "")],
)  # fmt: skip
def test_modes_search_as_fairseqs_generator_and_copy_the_text_alone(form: str, forced: str, tmp_path: Path) -> None:
    words, texts = dictionary(30), [torch.tensor([*text, 2]) for text in ([4, 9, 11, 5], [7], range(5, 34, 2))]
    named = {place: words.add_symbol(name) for place, name in zip(("{source}", "{target}"), PAIR, strict=True)}
    words.save(str(tmp_path / "dict.txt"))
    Settings("", "", dict(zip(PAIR, PAIR, strict=True)), form, forced.split(), {}, *PAIR).write(tmp_path)
    name = "aggressive_hub_translation"
    task = TASK_REGISTRY[name].setup_task(TASK_DATACLASS_REGISTRY[name](data=str(tmp_path)))
    model = random_network("transformer", 3, words, words, 0.1)
    before, after, prefix = (
        [named.get(word, words.index(word)) for word in part.split()] for part in (*form.split("{text}"), forced)
    )
    for mode, beam in {"greedy": 1, "iad": 1, "beam": 4, "aggressive-beam": 4}.items():
        options = Namespace(beam=beam, max_len_b=20, retain_iter_history=True)
        generator = task.build_generator([model], options, decoding=Decoding(mode))
        stock = SequenceGenerator([model], words, beam_size=beam, max_len_b=20)
        (batch,) = batches_of(task, texts, len(texts))
        for number, found in zip(batch["id"].tolist(), task.inference_step(generator, [model], batch), strict=True):
            source = torch.tensor([[*before, *texts[number][:-1].tolist(), *after]])
            sample = {"net_input": {"src_tokens": source, "src_lengths": torch.tensor([source.size(1)])}}
            (expected,) = stock.generate([model], sample, prefix_tokens=torch.tensor([prefix]) if prefix else None)
            assert [one["tokens"].tolist() for one in found] == [one["tokens"].tolist() for one in expected], mode
            assert mode != "iad" or found[0]["history"][0]["tokens"].tolist() == texts[number].tolist()


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
    outputs = dict(line.split("\t")[::2] for line in printed.splitlines() if line.startswith("D-"))
    model = load.hub("bart")
    own, greedy, alone, short = (
        model.decode(TEXTS, **given) for given in ({}, {"mode": "greedy"}, {"beam": 1}, {"max_len_b": 5})
    )
    assert [outputs[f"D-{number}"] for number in range(3)] == [one.text for one in own]
    assert [one.text for one in alone] == [one.text for one in greedy] != [one.text for one in own]
    assert max(len(one.sentences[0].tokens) for one in short) == 5
    for name in ("hub_translation", "block_drafting"):  # drafters learn to read what the model reads
        config = TASK_DATACLASS_REGISTRY[name](data="data-bin", dataset_impl=None, required_seq_len_multiple=1)
        task = TASK_REGISTRY[name].setup_task(config)
        task.load_dataset("test")
        pair = task.dataset("test")[1]
        assert (pair["source"].tolist(), pair["target"].tolist()) == ([0, *model.encode(TEXTS[1]).tolist()], [0, 2])


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
