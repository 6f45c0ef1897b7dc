"""The small experiments whose data come in many forms: real files, few lines of them."""

from itertools import islice
from pathlib import Path

import pytest
import torch
from experiments.text_files import read_lines

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.demo.shipped import SHIPPED
from tests.configs.composing import compose
from tests.configs.experiments.preparing import ROOT, experiment, prepare, write_gzipped


@pytest.mark.usefixtures("quick_commands")
def test_ukrainian_correction_to_scores_of_gold_edits(
    tmp_path: Path, aggdec_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the published files to a table of scores; what seems to be decoded is the source."""
    given, work = aggdec_data / "ua-gec", tmp_path / "work"
    train = list(islice(read_lines(given / "train.a1+a2.src-tgt.tsv.gz"), 300))
    # the last block is cut short
    gold = list(islice(read_lines(given / "gec-only.test.m2.gz"), 59))
    write_gzipped(tmp_path / "ua-gec/train.a1+a2.src-tgt.tsv.gz", train)
    write_gzipped(tmp_path / "ua-gec/gec-only.test.m2.gz", gold)
    prepare(
        experiment("ua_gec_small", HELD_OUT={"valid": 20}, SYMBOLS=300), tmp_path, work
    )
    tokens = (work / "tok/test.src").read_text().splitlines()
    assert [f"S {line}" for line in tokens] == [
        line for line in gold if line.startswith("S ")
    ]
    subwords = (work / "bpe/test.src").read_text().splitlines()
    (work / "decode/test/iad").mkdir(parents=True)
    lines = [f"H-{number}\t-1\t{line}" for number, line in enumerate(subwords)]
    (work / "decode/test/iad/generate-test.txt").write_text(
        "\n".join([*lines, "Generate test with beam=1"]) + "\n"
    )
    capsys.readouterr()
    config = str(ROOT / "configs/ua_gec_small/prepare.py")
    aggdec(
        ["score", "experiment", config, "--data", str(tmp_path), "--work", str(work)]
    )
    rows = {line.split("  ")[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "M2 F0.5" in rows[f"test ({len(tokens)})"]
    # no edit is wrong, none is found
    assert rows["source, unchanged"].split()[2:5] == ["100.00", "0.00", "0.00"]
    assert rows["iad"].split()[1:] == rows["source, unchanged"].split()[2:]


@pytest.mark.usefixtures("quick_commands")
def test_simplification_starts_from_the_shipped_model(
    tmp_path: Path, aggdec_data: Path
) -> None:
    """Its data in the shipped subwords, its model in the shipped shape: fairseq only finds out at the first update."""
    for name in ("tune", "validation", "test"):
        file = f"wikisplit/{name}.tsv.gz"
        write_gzipped(tmp_path / file, list(islice(read_lines(aggdec_data / file), 20)))
    for file in [
        f"onestopenglish/{name}.txt" for name in ("ADV-INT", "ADV-ELE", "ELE-INT")
    ]:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(
            "\n".join(islice(read_lines(aggdec_data / file), 30)) + "\n"
        )
    (tmp_path / "asset").mkdir()
    for name in ("orig", *(f"simp.{number}" for number in range(10))):
        few = islice(read_lines(aggdec_data / f"asset/asset.test.{name}"), 5)
        (tmp_path / f"asset/asset.test.{name}").write_text("\n".join(few) + "\n")
    prepare(
        experiment("wikisplit_small", HELD_OUT={"valid": 5}),
        tmp_path,
        tmp_path / "work",
    )
    text, binary = tmp_path / "work/text", tmp_path / "work/data-bin"
    for side in ("complex", "simple"):
        lines = (text / f"train.{side}").read_text().splitlines()
        # less those that share a sentence with the held-out ones
        assert 60 <= len(lines) <= 2 * 20 + 3 * 10 - 5
        assert not [
            line for line in lines if "<::::>" in line or line.endswith((" .", "*"))
        ]
    assert len(list(text.glob("asset.ref*"))) == 10
    shipped = torch.load(
        SHIPPED["gec"].folder / "model.pt", map_location="cpu", weights_only=False
    )
    assert (binary / "dict.complex.txt").read_bytes() == (
        SHIPPED["gec"].folder / "dict.en.txt"
    ).read_bytes()

    model, trained = compose("wikisplit_small", "train").model, shipped["cfg"]["model"]
    for side in ("encoder", "decoder"):
        for option in (
            "embed_dim",
            "ffn_embed_dim",
            "layers",
            "attention_heads",
            "normalize_before",
        ):
            assert model[side][option] == trained[side][option], f"{side}.{option}"
    for option in (
        "share_all_embeddings",
        "activation_fn",
        "max_source_positions",
        "max_target_positions",
    ):
        assert model[option] == trained[option]
