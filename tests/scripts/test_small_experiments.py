"""The stages of the small summarization experiment and the table of depths, with tiny models on little data."""

import gzip
import random
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from fairseq_aggdec.data.text_stages import read_lines
from tests.scripts.checkout import checkout_with, run


@pytest.fixture
def copied(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the experiment that the test names, to be changed; its folder."""
    return checkout_with(request.param, tmp_path) / "configs" / request.param


def rewrite(path: Path, *changes: tuple[str, str]) -> None:
    """Replaces text that must be there."""
    text = path.read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path.write_text(text)


def shorten(config: Any, updates: int) -> None:
    """So few updates that every one of them is saved, and averaged."""
    config.optimization.max_update = config.lr_scheduler.total_num_update = updates
    config.lr_scheduler.warmup_updates = 1
    config.checkpoint.save_interval_updates = config.dataset.validate_interval_updates = 1
    config.dataset.max_tokens = 600
    config.common.bf16 = False  # emulated, very slowly, where the processor does not multiply bfloat16


@pytest.mark.parametrize("copied", ["scitldr"], indirect=True)
def test_summaries(copied: Path, tmp_path: Path, aggdec_data: Path) -> None:
    (tmp_path / "data/scitldr").mkdir(parents=True)
    for name, count in (("train", 60), ("dev", 6), ("test", 6)):
        with gzip.open(tmp_path / f"data/scitldr/{name}.jsonl.gz", "wt", encoding="utf-8") as output:
            lines = read_lines(aggdec_data / f"scitldr/{name}.jsonl.gz")
            output.writelines(line + "\n" for line in islice(lines, count))
    rewrite(copied / "prepare.yaml", ("symbols: 6000", "symbols: 400"))
    sizes = {"embed_dim": 32, "ffn_embed_dim": 64, "layers": 1}
    for name in ("pretrain", "verifier"):
        config = OmegaConf.load(copied / f"{name}.yaml")
        shorten(config, 5)
        for side in ("encoder", "decoder"):
            config.model[side].update(sizes)
        OmegaConf.save(config, copied / f"{name}.yaml")

    folders = {"data": tmp_path / "data", "work": tmp_path / "work", "root": copied.parents[1]}
    work = tmp_path / "work" / copied.name
    run("reproduce", copied.name, "prepare", "pretrain", "verifier", **folders)
    assert all((work / name / "model.pt").is_file() for name in ("pretrain", "verifier"))


@pytest.mark.parametrize("copied", ["gec_small"], indirect=True)
def test_depths(copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, words = random.Random(1), [a + b for a in "bdfgkl" for b in "aeiou"]
    data, files = tmp_path / "data", {}
    data.mkdir()
    for name, count in (("train", 1000), ("valid", 10), ("test", 8)):
        sentences = [" ".join(rng.choices(words, k=rng.randint(2, 9))) for _ in range(count)]
        for side in ("src", "tgt"):
            (data / f"{name}.{side}").write_text("".join(sentence + "\n" for sentence in sentences))
        files[name] = {"source": f"{name}.src", "target": f"{name}.tgt"}
    prepare = {
        "languages": {"source": "src", "target": "tgt"}, "parallel": files, "max_tokens": 60,
        "bpe": {"symbols": 60, "min_frequency": 2}, "score": ["gleu", "edit-ratio"],
    }  # fmt: skip
    OmegaConf.save(OmegaConf.create(prepare), copied / "prepare.yaml")
    config = OmegaConf.load(copied / "depth.yaml")
    shorten(config, 5)
    for side in ("encoder", "decoder"):
        config.model.update({f"{side}_embed_dim": 32, f"{side}_ffn_embed_dim": 64})
    del config.task["upsample_primary"]
    OmegaConf.save(config, copied / "depth.yaml")
    rewrite(
        copied / "depth.sh",
        ("test2", "test"),
        ("--batch-size 32", "--batch-size 32 --max-len-b 20"),
        ("--threads 2", "--threads 1 --repeats 1 --max-len-b 20"),
    )
    monkeypatch.setenv("DEPTHS", "11-1")
    monkeypatch.setenv("BENCH_LIMIT", "3")

    folders = {"data": data, "work": tmp_path / "work", "root": copied.parents[1]}
    table = run("reproduce", copied.name, "prepare", "depth", **folders).stdout
    assert "Scores of 8 sentences; times of the first 3 of them" in table
    [row] = [line for line in table.splitlines() if line.startswith("| 11+1")]
    assert row.count("x ") >= 3  # speed-ups
    assert (tmp_path / "work" / copied.name / "depth/table.md").read_text() in table
