"""What users get wrong is refused by name, before anything is decoded: a command, and a part of what it says.

The options of fairseq's search are in tests/tasks/test_refused_options.py.
"""

import shlex
import shutil
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from fairseq.data.encoders import BPE_REGISTRY, TOKENIZER_REGISTRY

from fairseq_aggdec.cli.options import SUBWORDS, TOKENIZERS, Search
from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.options import SearchOptions
from tests.cli.correction import SENTENCES, generate_here
from tests.support.helpers import ToyModel, refused_with

DECODE = "decode DATA --path x --output out"
LINES = "decode BIN --path MODEL --output FILES/out"
TUNE = "tune DATA --path x --drafter-path y --output z"
WITHOUT_MEANING = {
    "bench DATA --path x --batch-sizes 1,0": "1,0: give different numbers of at least 1",
    "bench DATA": "give DATA and --path, or --random-model",
    "bench DATA --random-model base --path x": "leave out DATA, --path",
    f"{DECODE} --beam 4": "--beam goes with --decoding beam",
    f"{DECODE} --input a/text b/text": "two files are called text",
    f"{DECODE} --input text.2019 text": "would be outputs of text.2019, too",
    f"{DECODE} --lenpen nan": "--lenpen: nan: must be a finite number",
    "distill data out": "--teacher",
    "distill data out --teacher x --fp16 --bf16": "--fp16 and --bf16 are not allowed together",
    "drafter --verifier x --data y --out z --minutes 3 --updates 4": "--minutes and --updates are not allowed together",
    "drafter --verifier x --data y --out z --minutes inf": "--minutes: inf: must be at least 1",
    "super-resolve DATA.npz --path x --output y --accept-distance nan": "nan: must be at least 0",
    f"{TUNE} --betas 3,3": "3,3: give different numbers of at least 1",
    f"{TUNE} --tolerances nan": "nan: give different numbers of at least 0",
    "report trace stats.jsonl --sentences two": "two: give different numbers of at least 0",
    "verify DATA --path x --precisions fp64": "fp64: give different ones of fp32, fp16, bf16, int8, exact",
    "verify DATA --path x --precisions fp32,exact --no-bit-exact": "leave out --no-bit-exact, or exact",
    "verify DATA --path x --max-len-a 1.2 --thorough": "--max-len-a lets the length of an output depend on",
}
"""options that make no sense together: nothing is read"""
VERBS = {
    "benhc": "aggdec benhc: there is no such verb; the nearest is bench, aggdec --help lists all",
    "bench BIN --path MODEL --reference FILES/short": f"short has 1 lines, test of BIN by MODEL has {SENTENCES} ",
    "bench none --path MODEL --json FILES/dict.txt": "dict.txt: exists and is another kind of file",
    "verify none --path MODEL --json FILES/dict.txt": "dict.txt: exists and is another kind of file",
    "verify DATA --path MODEL --modes iad@int8": "name precisions by --precisions",
    "verify DATA --path MODEL --modes beam1": "only this plugin's modes are compared",
    "verify BIN --path MODEL --draft-file FILES/short": f"has 1 lines, and the split {SENTENCES} sentences",
    "report FILES/none.json": "none.json: No such file",
    "report FILES/empty.json": "empty.json, title: required field missing; not written by this version",
    "correct --input FILES/none": "none: cannot be read (No such file",
    "correct --input FILES/latin": "latin, line 2: not valid UTF-8",
    "correct --bpe subword_nmt a": "--bpe is for a model of your own: give its checkpoint by --path",
    "correct a --input b": "give texts or --input, not both",
    "correct --mode fast a": "mode fast: choose one of",
    "super-resolve FILES/none.npz --path MODEL --output FILES": "trained for --task translation; give a model of",
    f"{LINES} --input FILES/none": "FILES/none: No such file",
    f"{LINES} --input FILES/short --fp16 --cpu": "--fp16 is for GPUs",
    f"{LINES} --input FILES/short --bpe subword_nmt --bpe-codes FILES/no": "--bpe subword_nmt: file FILES/no not found",
    "distill BIN FILES/out --teacher MODEL --cpu --fp16": "--fp16 is for GPUs",
    "distill BIN FILES/out --teacher MODEL --cpu --bf16": "bf16 is for GPUs: on a CPU take --int8",
    "distill BIN FILES/out --teacher MODEL --cpu --subset trian": "trian.src-tgt.src.idx and .bin: not binarised data",
    "distill BIN FILES --teacher MODEL --cpu": "FILES: is there, and was not made by aggdec distill",
    "drafter --verifier none.pt --data BIN --out FILES/out": "none.pt: no such file; name one checkpoint",
    "drafter --verifier DRAFTER --data BIN --out FILES/out": "is a block drafter; name the model",
    "drafter --verifier MODEL --data BIN --out FILES": "FILES: is there, and was not made by aggdec drafter",
    "export MODEL FILES/out --data FILES": "has no dict.*.txt",
    "export MODEL FILES/out --data BIN --decoding-block-size 2": "an ordinary model: only",
}
if not torch.cuda.is_available():
    VERBS["bench --random-model big --keep FILES/new --device cuda"] = (
        "--device cuda: PyTorch finds no CUDA device"
    )
DRAFTS = "--draft-file FILES"
MULTI = "iad --task aggressive_translation_multi_simple_epoch --encoder-langtok src --decoder-langtok"
GENERATE = {
    "iad --bit-exact --path MODEL:MODEL": "--bit-exact takes one model, and --path names 2",
    "iad --decoding-stats /nowhere/stats.jsonl": "--decoding-stats",
    "iad --decoding-stats FILES/short": "FILES/short: is a file that this option did not write",
    "iad --decoding-stats /dev/full": "--decoding-stats /dev/full: cannot be written (No space left",
    "iad -s src -t xx": "BIN: has no dict.xx.txt; check --source-lang",
    "iad --gen-subset dev": "Dataset not found: dev (BIN): no such split; check the data folder",
    "iad --max-tokens 5": "--max-tokens",
    "iad --path MODEL:": "--path (or --lm-path) has a name that is empty",
    "blockwise": "needs a model with proposal heads, and --path",
    "fastest": "--decoding fastest: choose from beam, greedy",
    "iad --model-overrides [1]": "--model-overrides [1]: must be a dictionary",
    "iad --model-overrides ''": "--model-overrides : must be a dictionary",
    """iad --model-overrides "{'model'" """: "--model-overrides {'model': must be a dictionary",
    "iad --model-overrides '{[]: 1}'": "--model-overrides {[]: 1}: must be a dictionary",
    """iad --model-overrides "{'task': {'model': {}}}" """: "Missing key model",
    """iad --model-overrides "{'encoder_layers': 7}" """: "Missing key(s)",
    "gad --drafter-path DRAFTER --path DRAFTER": "--path DRAFTER: a block drafter, not a verifier",
    "gad --drafter-path MODEL": "--drafter-path MODEL: an ordinary model, not a block drafter, which --decoding",
    "speculative --drafter-path DRAFTER": "a block drafter, not an ordinary model, which --decoding speculative takes",
    "nar": "an ordinary model",
    f"iad {DRAFTS}/none": "--draft-file FILES/none: no such file",
    f"iad {DRAFTS}": "--draft-file FILES: Is a directory: name a",
    f"iad++ {DRAFTS}/short": f"--draft-file FILES/short: has 1 lines, and the split test {SENTENCES} sentences",
    f"aggressive {DRAFTS}/latin": "FILES/latin, line 2: not valid UTF-8",
    f"greedy {DRAFTS}/short": "--draft-file is read by",
    f"aggressive {DRAFTS}/short --drafter-path DRAFTER": "--draft-file does not go with --drafter-path",
    f"{MULTI} -s src -t tgt": "--lang-pairs is required",
    f"{MULTI} --lang-pairs src-tgt -s src -t de": "check --langs",
    "iad --task aggressive_translation_from_pretrained_bart -s src -t tgt": "check --langs",
    "iad --task aggressive_multilingual_translation --lang-pairs src-tgt -s src -t de": "'de': check --langs",
}


@pytest.fixture
def names(
    correction_model: ToyModel, correction_drafter: Path, tmp_path: Path
) -> dict[str, str]:
    """What the words in capitals stand for."""
    (tmp_path / "short").write_text("ba\n")
    (tmp_path / "latin").write_bytes("ba\nB\xe4r\n".encode("latin-1"))
    (tmp_path / "dict.txt").write_text("the 12\n")
    (tmp_path / "empty.json").write_text("{}")
    return {
        "MODEL": str(correction_model.checkpoint),
        "BIN": str(correction_model.data),
        "DRAFTER": str(correction_drafter),
        "FILES": str(tmp_path),
    }


def with_names(text: str, names: dict[str, str]) -> str:
    for name, path in names.items():
        text = text.replace(name, path)
    return text


@pytest.mark.parametrize("words", WITHOUT_MEANING)
def test_options_without_meaning(
    words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as exit_info:
        aggdec(words.split())
    assert exit_info.value.code == 2
    assert WITHOUT_MEANING[words] in capsys.readouterr().err


@pytest.mark.parametrize("words", VERBS)
def test_verbs(
    words: str, names: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AggdecError) as caught:
        aggdec(with_names(words, names).split())
    assert with_names(VERBS[words], names) in str(caught.value)
    assert not capsys.readouterr().out
    files = {path.name for path in Path(names["FILES"]).iterdir()}
    assert files - {"out"} == {"short", "latin", "dict.txt", "empty.json"}, (
        "nothing is written"
    )


@pytest.mark.parametrize("options", GENERATE)
def test_fairseq_generate(
    options: str, names: dict[str, str], correction_model: ToyModel
) -> None:
    mode, *others = shlex.split(with_names(options, names))
    with pytest.raises(AggdecError) as caught:
        generate_here(correction_model, mode, *others)
    assert with_names(GENERATE[options], names) in str(caught.value)
    assert Path(names["FILES"], "short").read_text() == "ba\n"


def test_dictionaries_of_another_model(
    correction_model: ToyModel, correction_drafter: Path, tmp_path: Path
) -> None:
    """A model finds out by its weights, a drafter by the files beside it, exported or an ordinary model."""

    def add_a_word(path: Path) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write("onemore 1\n")

    other = ToyModel(
        Path(shutil.copytree(correction_model.data, tmp_path / "data")),
        correction_model.checkpoint,
    )
    reasons = {
        "src": "--share-all-embeddings requires a joined dict",
        "tgt": "size mismatch for decoder.output_proj",
    }
    for language, reason in reasons.items():
        add_a_word(other.data / f"dict.{language}.txt")
        with pytest.raises(AggdecError) as caught:
            generate_here(other, "iad")
        assert f"checkpoint {other.checkpoint}: {reason}" in str(caught.value)
        assert str(caught.value).endswith(
            f"check whether the dictionaries in {other.data} are those of its training"
        )
    files = ["--verifier", str(other.checkpoint), "--data", str(other.data)]
    with refused_with(r"--verifier .*: its encoder has \d+ symbols"):
        aggdec(["drafter", *files, "--out", str(tmp_path / "o")])
    beside = tmp_path / "drafter"
    data = str(correction_model.data)
    aggdec(["export", str(correction_drafter), str(beside), "--data", data])
    add_a_word(beside / "dict.src.txt")
    shutil.copy(correction_model.checkpoint, beside / "small.pt")
    for decoding, name in {"gad": "model.pt", "speculative": "small.pt"}.items():
        with refused_with(r"source dictionary \(.*drafter/dict\.src\.txt\)"):
            generate_here(correction_model, decoding, "--drafter-path", beside / name)


def test_the_command_line_has_all_names_of_fairseq() -> None:
    assert set(TOKENIZERS) == set(TOKENIZER_REGISTRY)
    assert set(SUBWORDS) == set(BPE_REGISTRY)
    assert [option.name for option in fields(Search)] == [
        option.name for option in fields(SearchOptions)[1:]
    ]
