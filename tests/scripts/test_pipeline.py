"""The stage scripts end to end, on a few hundred lines: prepare, train, resume, average, decode, score."""

import gzip
import json
import re
from itertools import islice
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from fairseq_aggdec.cli import compare
from fairseq_aggdec.data.preparation import read_lines
from fairseq_aggdec.files import file_sha256
from fairseq_aggdec.lab.reporting.results import load_results
from tests.scripts.checkout import AWKWARD, checkout_with, run, run_whatever_comes

SMALL = [
    "model.encoder.layers=1",
    "model.encoder.embed_dim=32",
    "model.decoder.embed_dim=32",
    "model.encoder.ffn_embed_dim=64",
    "model.decoder.ffn_embed_dim=64",
    "dataset.max_tokens=500",
    "dataset.validate_interval_updates=2",
    "checkpoint.save_interval_updates=2",
    "lr_scheduler.warmup_updates=1",
]


@pytest.fixture
def small_data(tmp_path: Path, aggdec_data: Path) -> Path:
    """The first lines of the post-editing data."""
    folder = tmp_path / "data"
    for name, lines in (("train", 300), ("dev", 20), ("test20", 20)):
        for side in ("mt", "pe"):
            file = f"{name}.{side}" + (".gz" if name == "train" else "")
            head = list(islice(read_lines(aggdec_data / "mlqe-pe-en-de" / file), lines))
            output = folder / "mlqe-pe-en-de" / file
            output.parent.mkdir(parents=True, exist_ok=True)
            with gzip.open(output, "wt") if name == "train" else output.open("w") as lines_out:
                lines_out.writelines(line + "\n" for line in head)
    return folder


def test_all_stages(small_data: Path, tmp_path: Path) -> None:
    root = checkout_with("ape_small", tmp_path / "checkout")
    prepare = root / "configs/ape_small/prepare.yaml"
    prepare.write_text(prepare.read_text().replace("symbols: 4000", "symbols: 200"))  # learning them takes long
    work = tmp_path / AWKWARD
    folders = {"data": small_data, "work": work, "root": root}
    run("prepare", "ape_small", data=small_data, work=Path(AWKWARD), root=root, cwd=tmp_path)
    binary = work / "ape_small/data-bin/train.mt-pe.pe.bin"
    stamp = binary.stat().st_mtime_ns
    run("prepare", "ape_small", **folders)  # does nothing
    assert binary.stat().st_mtime_ns == stamp

    checkpoints = work / "ape_small/checkpoints"
    run("train", "ape_small", *SMALL, "optimization.max_update=4", **folders)
    assert {"checkpoint_last.pt", "checkpoint_best.pt"} <= {path.name for path in checkpoints.iterdir()}
    resumed = run("train", "ape_small", *SMALL, "optimization.max_update=6", **folders)
    assert "@ 4 updates" in resumed.stdout + resumed.stderr  # goes on from the last checkpoint

    run("average", "ape_small", "2", **folders)
    assert (work / "ape_small/model.pt").is_file()

    run("decode", "ape_small", "--decoding", "iad", "--max-len-b", "20", **folders)
    output = work / "ape_small/decode/test/iad/generate-test.txt"
    stamp = output.stat().st_mtime_ns
    assert "is complete" in run("decode", "ape_small", "--decoding", "iad", **folders).stderr
    assert output.stat().st_mtime_ns == stamp

    table = run("score", "ape_small", **folders).stdout
    for word in ("test (20)", "BLEU", "TER", "source, unchanged", "iad"):
        assert word in table


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
        "--threads 1 --limit 3 --repeats 1 --no-memory --max-len-b 12"  # untrained models speak until they are stopped
    )
    stages = (folder / "stages.sh").read_text()
    stages = stages.replace("--threads 2", few).replace("--shards 2", "--shards 1")  # those are test_distill.py's
    stages = re.sub(r"(?m)^.*--label teacher-beam5$", "", stages).replace(' "5 3"', "")
    stages = stages.replace("--decoding greedy", "--decoding greedy --max-len-b 12")
    (folder / "stages.sh").write_text(stages + "decoding_options=(--max-len-b 12)\n")
    prepare = OmegaConf.load(folder / "prepare.yaml")
    prepare.sentence_pairs.long_words = 2
    prepare.sentence_pairs.joined_pairs.lines = 5
    prepare.hold_out = {"valid": 10, "test": 12}
    prepare.bpe.symbols = 150
    OmegaConf.save(prepare, folder / "prepare.yaml")
    for name in ("teacher", "verifier", "drafter"):
        config = OmegaConf.load(folder / f"{name}.yaml")
        config.model.decoder.layers = 1
        for side in (config.model.encoder, config.model.decoder) if name != "drafter" else ():
            side.layers, side.embed_dim, side.ffn_embed_dim = 1, 32, 64
        config.dataset.max_tokens, config.optimization.max_update = 500, 5
        config.dataset.validate_interval_updates = config.checkpoint.save_interval_updates = 1
        config.lr_scheduler.warmup_updates = 1
        OmegaConf.save(config, folder / f"{name}.yaml")
    return root


def test_translation_from_text_to_tables(small_translation: Path, tmp_path: Path) -> None:
    folders = {"data": tmp_path / "data", "work": tmp_path / "work", "root": small_translation}
    work = tmp_path / "work/tatoeba_en_de"
    training = ("prepare", "teacher", "distill", "verifier", "redistill", "drafter")
    run("reproduce", "tatoeba_en_de", *training, **folders)
    assert all((work / name / "model.pt").is_file() for name in ("teacher", "verifier", "drafter"))
    record = json.loads((work / "redistilled/data-bin/distillation.json").read_text())["splits"]
    assert record.keys() == {"train", "valid"}
    assert record["valid"]["search"]["beam"] == 1
    assert record["valid"]["teacher"] == [file_sha256(work / "verifier/model.pt")]
    tables = run("reproduce", "tatoeba_en_de", **folders)
    assert "checkpoint_last" not in tables.stdout  # nothing is trained again
    outputs = {file.parent.name: file for file in (work / "decode/test").glob("*/generate-test.txt")}
    names = {"beam5", "beam1", "greedy", "nar", "gad", "gad++-3-1"}
    assert set(outputs) == names
    assert compare.main([str(outputs["beam1"]), str(outputs["gad"])]) == 0
    for name in names:
        assert name in tables.stdout
    for word in ("sacrebleu", "mean accepted tokens", "3 of 3", "verifier's decoder"):
        assert word in tables.stdout
    assert "## Ge et al. 2022, Table 5: " in tables.stdout  # the stage `table`
    results = load_results(work / "results.json")
    assert {decoding.label for decoding in results.decodings} == {"greedy", "nar", "gad", "gad++-3-1"}
    assert all(decoding.command for decoding in results.decodings)


def test_unknown_stage_is_refused_with_the_names_there_are(tmp_path: Path) -> None:
    done = run_whatever_comes("reproduce", "tatoeba_en_de", "nothing", data=tmp_path, work=tmp_path)
    assert done.returncode == 2
    assert "teacher distill verifier redistill drafter decode score bench table ablation" in done.stderr


def test_unknown_experiment_is_refused_with_the_names_there_are(tmp_path: Path) -> None:
    done = run_whatever_comes("train", "nothing", data=tmp_path, work=tmp_path)
    assert done.returncode == 2
    assert "gec_small" in done.stderr
