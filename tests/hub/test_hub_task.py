"""Imported models on data and text: sources and outputs have the form that the model knows, wherever it decodes."""

import shlex
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY

from fairseq_aggdec import load
from fairseq_aggdec.bulk.data_bin import DataBin
from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.cli.verbs import parse
from fairseq_aggdec.hub.importing import commands, import_checkpoint, imported
from fairseq_aggdec.hub.settings import Settings
from fairseq_aggdec.hub.tokenizers import read_tokenizer
from fairseq_aggdec.lab.verify.against_transformers import InTheirIds
from fairseq_aggdec.text.results import Result
from fairseq_aggdec.text.sentences import split_text
from fairseq_aggdec.train.drafter.plan import Measured
from fairseq_aggdec.train.drafter.recipe import Recipe
from fairseq_aggdec.train.drafter.stages import _Stages
from tests.hub.imported_models import PROMPTS, Imported, copied
from tests.support.helpers import PLUGIN, generate_here, refused_with, run_cli

MODELS = Path(__file__).parent / "models"
PAIR = ("eng_Latn", "deu_Latn")
TEXTS = ["She have two brother.", "The old man reads a book.", "Where do you live?"]


def texts_of(results: list[Result]) -> list[str]:
    return [one.text for one in results]


def test_the_commands_that_an_import_prints_run_and_search_as_load_hub_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("text", "train", "valid"):
        Path(f"{name}.txt").write_text("\n".join(TEXTS), "utf-8")
    aggdec(["import-hf", str(MODELS / "bart"), "--out", "bart"])
    translate, binarize, generate, bench, drafter = capsys.readouterr().out.splitlines()
    for line in (translate, binarize, f"{bench} --repeats 1 --no-profile --no-memory"):
        aggdec(shlex.split(line)[1:])
    parse(shlex.split(drafter)[1:])
    printed = run_cli(
        *shlex.split(generate.replace("$(aggdec user-dir)", str(PLUGIN))), cwd=tmp_path
    ).stdout
    assert "BLEU" not in printed, "there are no references"
    outputs = dict(
        line.split("\t")[::2] for line in printed.splitlines() if line.startswith("D-")
    )
    model = load.hub("bart")
    own, greedy, alone, short = (
        model.decode(TEXTS, **given)
        for given in ({}, {"mode": "greedy"}, {"beam": 1}, {"max_len_b": 5})
    )
    assert [outputs[f"D-{number}"] for number in range(3)] == texts_of(own)
    assert texts_of(alone) == texts_of(greedy) != texts_of(own)
    assert max(len(one.sentences[0].tokens) for one in short) == 5
    stock = [
        texts_of(load.hub("bart").decode(TEXTS, "beam", beam=beam))
        for beam in (1, 3, 1)
    ]
    assert stock == [
        texts_of(model.decode(TEXTS, "beam", beam=beam)) for beam in (1, 3, 1)
    ]
    data = DataBin.find(Path("data-bin"))
    recipe = Recipe(Path("bart/model.pt"), 128, 2, 5, torch.device("cpu"), bf16=False)
    # texts alone, without the forced <s>
    targets = recipe.teacher(data).translate(range(3), [*data.source("train")])
    symbols = data.target_dictionary.symbols
    for one, target in zip(greedy, targets, strict=True):
        assert one.sentences[0].tokens[1:] == [symbols[token] for token in target[:-1]]
    unread: Any = None
    stages = _Stages(Path("drafter"), data, unread, recipe, 0.0, unread)
    last_line = stages._conclusion(Path("drafter.pt"), Measured(5, 2.0, 1.5), unread)
    of_search = generate.split(" --beam 4 ")[1]
    assert f" --bpe hub --hub-folder bart {of_search} --user-dir" in last_line
    # drafters learn to read what the model reads, and are tried out with empty targets
    for name, expected in {"hub_translation": None, "block_drafting": [0, 2]}.items():
        config = TASK_DATACLASS_REGISTRY[name](
            data="data-bin", dataset_impl=None, required_seq_len_multiple=1
        )
        task = TASK_REGISTRY[name].setup_task(config)
        task.load_dataset("test")
        pair = task.dataset("test")[1]
        assert pair["source"].tolist() == [0, *model.encode(TEXTS[1]).tolist()]
        assert (
            pair["target"] if expected is None else pair["target"].tolist()
        ) == expected
        config.num_batch_buckets = 2
        with refused_with(r"^--num-batch-buckets: cannot be used on an imp"):
            task.load_dataset("test")


def test_languages_go_by_name_and_processes_import_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with ThreadPoolExecutor(2) as threads:
        assert len({*threads.map(imported, 2 * [MODELS / "nllb"])}) == 1
    command = f"translate --model {MODELS}/nllb -s {PAIR[0]} -t {PAIR[1]} --mode iad"
    aggdec([*command.split(), TEXTS[1]])
    found = load.hub(MODELS / "nllb", *PAIR).decode(TEXTS[1], "greedy")
    assert capsys.readouterr().out == f"{found.text}\n"
    assert (found.sentences[0].tokens[0], PAIR[1] in found.text) == (PAIR[1], False)
    with refused_with(r"^-t deu: the model has no such language; .*deu_Latn"):
        load.hub(MODELS / "nllb", PAIR[0], "deu")
    with refused_with(r"several languages \(.*\): give -t \(serve"):
        load.hub(MODELS / "m2m_100", "en")
    with refused_with(r"^-t en: the model has no such language; its only one is de$"):
        load.hub(MODELS / "marian_two", "de", "en")
    monkeypatch.setenv("XDG_CACHE_HOME", f"{__file__}")
    with refused_with(
        r"cannot be written \(.*\); set XDG_CACHE_HOME to another folder$"
    ):
        load.hub(MODELS / "nllb", *PAIR)


@pytest.mark.parametrize(
    "name, changes",
    [
        ("bart", {"config.json": {"task_specific_params": {"summarization_cnn": {}}}}),
        ("pegasus", {}),
    ],
)
def test_a_line_is_one_input_and_with_whole_which_the_import_of_a_summarizer_prints_a_text_is(
    name: str,
    changes: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "imported"
    file = tmp_path / "text"
    aggdec(
        ["import-hf", str(copied(name, tmp_path / name, changes)), "--out", str(out)]
    )
    printed = shlex.split(capsys.readouterr().out.splitlines()[0])
    lines = [
        "She likes miniskirts. Tom is here.",
        "",
        " \t",
        "  We're going out for Chinese.\r",
        "",
    ]
    text = "\n".join(lines)
    model = load.hub(out)
    file.write_bytes(text.encode())
    whole, of_example = (model.decode(one, whole=True) for one in (text, printed[-1]))
    assert "--whole" in printed
    assert [one.source for one in whole.sentences] == [text.strip()]
    command = ["translate", "--model", str(out), "--input", str(file)]
    for words in (command, [*command, "--whole"], printed[1:]):
        aggdec(words)
    alone = "\n".join(model.decode(line).text for line in lines)
    assert capsys.readouterr().out == f"{alone}{whole.text}{of_example.text}\n"


@pytest.mark.parametrize("name", ["byt5", "mt5", "t5"])
def test_a_prompt_is_read_before_each_text_as_if_it_were_written_there(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prompt = "translate English to German: "
    out = tmp_path / "out"
    aggdec(["import-hf", str(MODELS / name), "--out", str(out), "--prompt", prompt])
    parse(shlex.split(capsys.readouterr().out.splitlines()[-1])[1:])
    tokenizer = read_tokenizer(MODELS / name)
    ours = InTheirIds(MODELS / name, load.hub(out))
    assert [*ours.inputs(TEXTS)] == [
        [*tokenizer.encode(prompt + text), 1] for text in TEXTS
    ]


def test_a_prompt_given_at_use_replaces_that_of_the_import_and_an_empty_one_takes_it_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flan = Imported("flan_t5", tmp_path / "flan")
    row = flan.rows[-1]
    text = row["text"]
    asked = PROMPTS["flan_t5"]
    other = tmp_path / "other"
    import_checkpoint(MODELS / "flan_t5", other, "Summarize: ")
    alone = [*read_tokenizer(other).encode(text), 1]
    found = []
    whole = row["input"]
    cases = [
        (flan.folder, None, whole),
        (other, asked, whole),
        (other, "", alone),
    ]
    for folder, prompt, tokens in cases:
        model = load.hub(folder, prompt=prompt)
        assert [*InTheirIds(MODELS / "flan_t5", model).inputs([text])] == [tokens]
        found.append(model.decode(text, "iad").sentences[0])
    assert found[0] == found[1] != found[2], "with as many copied tokens"
    aggdec(["correct", "--model", str(other), "--prompt", asked, text])
    assert capsys.readouterr().out == f"{row['decoded']}\n"
    with refused_with(r"^--prompt: has 3000 tokens, and T5 was trained on 512 "):
        load.hub(other, prompt=1000 * "Fix ")
    with refused_with(r"^--prompt: is for T5 and mT5, and not for bart; leave it out"):
        load.hub(Imported("bart", tmp_path / "bart").folder, prompt=asked)


def test_a_t5_reads_a_long_text_whole_with_one_warning_and_cuts_it_where_asked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = Imported("t5", tmp_path / "t5").folder
    text = 500 * "Tom is here, "
    model = load.hub(folder)
    (part,) = model.parts(text)
    tokens = len(part.tokens)
    warning = f"a source of {tokens:,} tokens is read whole, and T5 was trained on 512"
    for _ in range(2):
        result = model.decode(text, "greedy", max_len_b=2)
        assert (result.sentences[0].note, caplog.text.count(warning)) == (None, 1)
    assert len(load.hub(folder, splits=True).sentences(text)) == 1
    cut = load.hub(folder, splits=True, longest=100)
    assert len(cut.sentences(text)) > 1
    # a server's strangers cannot fill its memory
    serve: Any = parse(["serve", "--corrector", str(folder)])
    assert serve._loaded("corrector", "").longest == 2048
    # fairseq-generate refuses more than 1,024 tokens unless told otherwise
    (tmp_path / "text.txt").write_text(text, "utf-8")
    printed = commands(folder, Settings.read(folder)).splitlines()
    aggdec(f"binarize {folder} {tmp_path}/data --test {tmp_path}/text.txt".split())
    words = shlex.split(printed[2].replace("$(aggdec user-dir)", str(PLUGIN)))[1:]
    words[words.index("data-bin")] = f"{tmp_path}/data"
    assert "D-0" in generate_here(*words, "--max-len-b", "2")
    assert caplog.text.count(warning) == 2


def test_texts_name_their_language_where_none_is_given_and_keep_their_own_in_a_batch(
    tmp_path: Path,
) -> None:
    imported = Imported("marian_multi", tmp_path / "imported")
    rows = imported.rows
    model = load.hub(imported.folder)
    tagged = [f"{row['target_lang']} {row['text']}" for row in rows]
    assert model.decode("\n".join(tagged), "greedy").text == "\n".join(
        row["decoded"] for row in rows
    )
    # one text in two languages, which hold for the sentences that follow
    text = rows[0]["text"]
    pairs = {row["target_lang"]: row for row in rows}
    deu, eng = (
        imported.of(pairs[tag]).model.decode(text, "greedy").text
        for tag in (">>deu<<", ">>eng<<")
    )
    assert deu != eng
    mixed = f">>deu<<\n{text}\n\n{text} {text}\n  >>eng<<{text} {text}"
    assert model.decode(mixed, "greedy").text == f"{deu}\n\n{deu} {deu}\n  {eng} {eng}"
    for untagged, message in (
        (
            f"{text}\n{mixed}",
            r"several languages \(deu, eng, .*give -t .*, or begin the text with one: >>deu",
        ),
        (
            f"{mixed}\n>>xyz<< {text}",
            "'>>xyz<< .*': the model has no such language; of its 2 .* deu",
        ),
    ):
        with refused_with(message):
            model.decode(untagged)
    # of a large file such lines are listed, and the others decoded
    (tmp_path / "text").write_text(
        "\n".join([tagged[0], "", text, ">>xyz<< Hello."]), "utf-8"
    )
    folders = f"--model {imported.folder} --input {tmp_path / 'text'} --output {tmp_path / 'out'}"
    aggdec(f"decode {folders} --decoding greedy".split())
    assert (tmp_path / "out/text.000000.txt").read_text(
        "utf-8"
    ) == f"{rows[0]['decoded']}\n\n\n\n"
    assert (tmp_path / "out/skipped.tsv").read_text("utf-8").count("\n") == 2


def test_a_draft_is_split_by_the_rules_of_the_language_that_its_text_names(
    tmp_path: Path,
) -> None:
    model = load.hub(Imported("marian_multi", tmp_path / "imported").folder)
    with mock.patch(
        "fairseq_aggdec.text.pipeline.split_text", wraps=split_text
    ) as split:
        model.decode("\n>>deu<< Tom is here.", "iad", drafts="Tom ist hier.")
    assert split.call_args.args == ("Tom ist hier.", "deu")
    assert model.target_lang is None
