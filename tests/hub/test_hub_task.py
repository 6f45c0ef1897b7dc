"""Imported models on data and text: sources and outputs have the form that the model knows, wherever it decodes."""

import json
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
from fairseq_aggdec.lab.verify.against_transformers import InTheirNumbers
from tests.hub.compare import Imported, copied
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
    for name in ("hub_translation", "block_drafting"):  # drafters learn to read what the model reads
        config = TASK_DATACLASS_REGISTRY[name](data="data-bin", dataset_impl=None, required_seq_len_multiple=1)
        task = TASK_REGISTRY[name].setup_task(config)
        task.load_dataset("test")
        pair = task.dataset("test")[1]
        assert (pair["source"].tolist(), pair["target"].tolist()) == ([0, *model.encode(TEXTS[1]).tolist()], [0, 2])
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
    with pytest.raises(AggdecError, match=r"several languages \(.*\): give -t \(serve"):
        load.hub(MODELS / "m2m_100", "en")
    with pytest.raises(AggdecError, match=r"^-t en: the model has no such language; its only one is de$"):
        load.hub(MODELS / "marian_two", "de", "en")
    monkeypatch.setenv("XDG_CACHE_HOME", f"{__file__}")
    with pytest.raises(AggdecError, match=r"cannot be written \(.*\); set XDG_CACHE_HOME to another folder$"):
        load.hub(MODELS / "nllb", *PAIR)


@pytest.mark.parametrize("name", ["bart", "pegasus"])
def test_a_line_is_one_input_and_with_whole_a_text_is(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    lines = ["She likes miniskirts. Tom is here.", "", " \t", "  We're going out for Chinese.\r", ""]
    text = "\n".join(lines)
    (tmp_path / "text").write_bytes(text.encode())
    model = load.hub(MODELS / name)
    whole = model.decode(text, whole=True)
    assert [one.source for one in whole.sentences] == [text.strip()]
    assert [one.source for one in model.decode(text).sentences] == [lines[0], lines[3].strip()]
    command = ["translate", "--model", str(MODELS / name), "--input", str(tmp_path / "text")]
    aggdec(command)
    aggdec([*command, "--whole"])
    assert capsys.readouterr().out == "\n".join(model.decode(line).text for line in lines) + whole.text
    corrector = load.hub(MODELS / name, corrects=True)
    assert [len(corrector.correct(text, whole=whole).sentences) for whole in (False, True)] == [3, 1]


def test_where_the_original_summarizes_the_printed_line_gives_a_text_as_one_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = {"task_specific_params": {"summarization_cnn": {"min_length": 56}}}
    of_cnn = copied("bart", tmp_path / "cnn", {"config.json": tasks})
    for folder, is_whole in ((of_cnn, True), (MODELS / "pegasus", True), (MODELS / "marian", False)):
        out = tmp_path / f"{folder.name}-imported"
        aggdec(["import-hf", str(folder), "--out", str(out)])
        line = capsys.readouterr().out.splitlines()[0]
        assert line in (out / "README.md").read_text("utf-8")
        assert (" --whole " in line) == is_whole
        aggdec(shlex.split(line)[1:])
        assert capsys.readouterr().out.strip()


def test_texts_name_their_language_where_none_is_given_and_keep_their_own_in_a_batch(tmp_path: Path) -> None:
    imported = Imported("marian_multi", tmp_path / "imported")
    model = load.hub(imported.folder)
    german, english = ([row for row in imported.rows if row["target_lang"] == tag] for tag in (">>deu<<", ">>eng<<"))
    tagged = [f"{row['target_lang']} {row['text']}" for row in imported.rows]
    assert [*InTheirNumbers(MODELS / "marian_multi", model).inputs(tagged)] == [row["input"] for row in imported.rows]
    decoded = "\n".join(row["decoded"] for row in imported.rows)
    assert model.decode("\n".join(tagged), "greedy").text == decoded
    # one sentence in two languages; the language holds for a text's further sentences
    text = german[0]["text"]
    both = [imported.of(some[0]).model.decode(text, "greedy").text for some in (german, english)]
    assert both[0] != both[1]
    mixed = f">>deu<<\n{text}\n\n{text} {text}\n  >>eng<<{text} {text}"
    expected = f"{both[0]}\n\n{both[0]} {both[0]}\n  {both[1]} {both[1]}"
    assert model.decode(mixed, "greedy").text == expected
    for untagged in (text, f"{text}\n{mixed}"):
        with pytest.raises(
            AggdecError, match=r"several languages \(deu, eng, .*give -t .*begin the text with one: >>de"
        ):
            model.decode(untagged)
    with pytest.raises(AggdecError, match=r"'>>xyz<< .*': the model has no such language; of its 2 .* deu"):
        model.decode([mixed, f">>xyz<< {text}"])
    with pytest.raises(AggdecError, match="the model has no such language"):
        load.hub(imported.folder, target_lang="xyz")


def test_lines_of_a_file_that_do_not_name_their_language_are_listed_and_the_others_decoded(tmp_path: Path) -> None:
    row = json.loads((MODELS / "marian_multi/expected.json").read_text("utf-8"))[0]
    lines = [f"{row['target_lang']} {row['text']}", "", row["text"], ">>xyz<< Hello."]
    (tmp_path / "text").write_text("\n".join(lines), "utf-8")
    folder = f"--model {MODELS / 'marian_multi'} --input {tmp_path / 'text'} --output {tmp_path / 'out'}"
    aggdec(["decode", *folder.split(), "--decoding", "greedy"])
    (decoded,) = (tmp_path / "out").glob("text.*.txt")
    assert decoded.read_text("utf-8") == f"{row['decoded']}\n\n\n\n"
    skipped = (tmp_path / "out/skipped.tsv").read_text("utf-8").splitlines()
    assert [line.split("\t")[1] for line in skipped] == ["3", "4"]
