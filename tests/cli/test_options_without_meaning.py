"""Options that make no sense together are refused by the command itself, before anything is read."""

import pytest
from fairseq.data.encoders import BPE_REGISTRY, TOKENIZER_REGISTRY

import fairseq_aggdec
from fairseq_aggdec.cli.options import SUBWORDS, TOKENIZERS
from fairseq_aggdec.cli.verbs import main as aggdec

DECODE = "decode DATA --path x --output out"
TUNE = "tune DATA --path x --drafter-path y --output z"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("bench DATA --path x --batch-sizes 1,0", "1,0: give different numbers of at least 1"),
        ("bench DATA", "give DATA and --path, or --random-model"),
        ("bench DATA --random-model base --path x", "leave out DATA, --path"),
        (f"{DECODE} --beam 4", "--beam goes with --decoding beam"),
        (f"{DECODE} --input a/text b/text", "two files are called text"),
        (f"{DECODE} --input text.2019 text", "would be outputs of text.2019, too"),
        ("distill data out", "--teacher"),
        ("distill data out --teacher x --fp16 --bf16", "--fp16 and --bf16 are not allowed together"),
        ("super-resolve DATA.npz --path x --output y --accept-distance nan", "nan: must be at least 0"),
        (f"{TUNE} --betas 3,3", "3,3: give different numbers of at least 1"),
        (f"{TUNE} --metric sacrebleu", "give --text-reference"),
        (f"{TUNE} --tolerances nan", "nan: give different numbers of at least 0"),
        ("report trace stats.jsonl --sentences two", "two: give different numbers of at least 0"),
        (f"{DECODE} --lenpen nan", "--lenpen: nan: must be a finite number"),
        ("verify DATA --path x --precisions fp64", "fp64: give different ones of fp32, fp16, bf16, int8, exact"),
        ("verify DATA --path x --precisions fp32,exact --no-bit-exact", "leave out --no-bit-exact, or exact"),
        (
            "verify DATA --path x --max-len-a 1.2 --thorough",
            "--max-len-a lets the length of an output depend on",
        ),
    ],
)
def test_options_without_meaning(
    words: str, reason: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as exit_info:
        aggdec(words.split())
    assert exit_info.value.code == 2
    assert reason in capsys.readouterr().err


def test_decode_names_every_tokenizer_and_every_kind_of_subwords() -> None:
    fairseq_aggdec.register()
    assert set(TOKENIZERS) == set(TOKENIZER_REGISTRY)
    assert set(SUBWORDS) == set(BPE_REGISTRY)
