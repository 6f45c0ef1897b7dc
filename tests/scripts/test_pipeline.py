"""The stage scripts end to end, on a few hundred lines: from preparing them to tables of results."""

import gzip
import json
import re
from itertools import islice
from pathlib import Path

import pytest
from experiments.text_files import read_lines
from omegaconf import OmegaConf

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.files import file_sha256
from tests.scripts.checkout import AWKWARD, checkout_with, run


@pytest.fixture
def small_translation(tmp_path: Path, aggdec_data: Path) -> Path:
    """A checkout in which tatoeba_en_de has its first sentences and tiny models."""
    root = checkout_with("tatoeba_en_de", tmp_path)
    folder = root / "configs/tatoeba_en_de"
    lines = list(islice(read_lines(aggdec_data / "tatoeba-en-de/deu.txt.gz"), 400))
    (tmp_path / "data/tatoeba-en-de").mkdir(parents=True)
    with gzip.open(tmp_path / "data/tatoeba-en-de/deu.txt.gz", "wt") as output:
        output.writelines(line + "\n" for line in lines)
    few = (
        # untrained models speak until they are stopped
        "--threads 1 --limit 3 --repeats 1 --no-memory --max-len-b 12"
    )
    stages = (folder / "stages.sh").read_text()
    stages = stages.replace("--threads 2", few)
    # the second distillation is shared out
    stages = stages.replace("--workers 2", "--workers 1", 1)
    stages = re.sub(r"(?m)^.*--label teacher-beam5$", "", stages).replace(
        ' "3 1" "5 3"', ""
    )
    stages = stages.replace("--decoding greedy", "--decoding greedy --max-len-b 12")
    (folder / "stages.sh").write_text(stages + "decoding_options=(--max-len-b 12)\n")
    with (folder / "prepare.py").open("a") as prepare:
        prepare.write(
            "tatoeba.LONG_WORDS, tatoeba.JOINED_PAIRS, tatoeba.SYMBOLS = 2, 5, 150\n"
        )
        prepare.write('tatoeba.HELD_OUT = {"valid": 10, "test": 12}\n')
    for name in ("teacher", "verifier", "drafter"):
        config = OmegaConf.load(folder / f"{name}.yaml")
        config.model.decoder.layers = 1
        for side in (
            (config.model.encoder, config.model.decoder) if name != "drafter" else ()
        ):
            side.layers = 1
            side.embed_dim = 32
            side.ffn_embed_dim = 64
        config.dataset.max_tokens = 500
        config.optimization.max_update = 5
        config.dataset.validate_interval_updates = (
            config.checkpoint.save_interval_updates
        ) = 1
        config.lr_scheduler.warmup_updates = 1
        OmegaConf.save(config, folder / f"{name}.yaml")
    return root


def test_translation_from_text_to_tables(
    small_translation: Path, tmp_path: Path
) -> None:
    """In folders with awkward names, one of them given relative to where the scripts are started."""
    folders = {
        "data": tmp_path / "data",
        "work": tmp_path / AWKWARD / "work",
        "root": small_translation,
    }
    work = folders["work"] / "tatoeba_en_de"
    relative = folders | {"work": Path(AWKWARD) / "work"}
    training = ("teacher", "distill", "verifier", "redistill", "drafter")
    run("reproduce", "tatoeba_en_de", "prepare", *training, **relative, cwd=tmp_path)
    assert all(
        (work / name / "model.pt").is_file()
        for name in ("teacher", "verifier", "drafter")
    )
    record = json.loads((work / "redistilled/data-bin/distillation.json").read_text())[
        "splits"
    ]
    assert record.keys() == {"train", "valid"}
    assert record["valid"]["search"]["beam"] == 1
    assert record["valid"]["teacher"] == [file_sha256(work / "verifier/model.pt")]
    stamps = {
        path: path.stat().st_mtime_ns for path in work.glob("**/data-bin/train*.bin")
    }

    tables = run("reproduce", "tatoeba_en_de", **folders)
    assert "checkpoint_last" not in tables.stdout, "nothing is trained again"
    assert stamps == {path: path.stat().st_mtime_ns for path in stamps}, (
        "nor prepared and distilled"
    )
    outputs = {
        file.parent.name: file
        for file in (work / "decode/test").glob("*/generate-test.txt")
    }
    names = {"beam5", "beam1", "greedy", "nar", "gad"}
    assert set(outputs) == names
    assert aggdec(["compare", str(outputs["beam1"]), str(outputs["gad"])]) == 0
    for word in (
        *names,
        "sacrebleu",
        "mean accepted tokens",
        "3 of 3",
        "verifier's decoder",
    ):
        assert word in tables.stdout
    assert "## Ge et al. 2022, Table 5: " in tables.stdout  # the stage `table`
    commands = (work / "table.md").read_text("utf-8").partition("## Commands")[2]
    assert all(f"decode/test/{name}" in commands for name in ("nar", "gad"))

    verifier = ("--model", str(work / "verifier/model.pt"))
    run(
        "decode",
        "tatoeba_en_de",
        "--decoding",
        "iad",
        *verifier,
        "--max-len-b",
        "12",
        **folders,
    )
    assert (
        aggdec(
            [
                "compare",
                str(outputs["beam1"]),
                str(outputs["beam1"].parents[1] / "iad/generate-test.txt"),
            ]
        )
        == 0
    )
    assert "iad" in run("reproduce", "tatoeba_en_de", "score", **folders).stdout

    longer = ("--config", "verifier", "optimization.max_update=6")
    resumed = run("train", "tatoeba_en_de", *longer, **folders)
    # goes on from the last checkpoint
    assert "@ 5 updates" in resumed.stdout + resumed.stderr
    output = outputs["gad"]
    stamp = output.stat().st_mtime_ns
    assert (
        "is complete"
        in run("decode", "tatoeba_en_de", "--decoding", "gad", **folders).stderr
    )
    assert output.stat().st_mtime_ns == stamp
