"""The stages of configs/sign_digits_sr, on a few made-up images."""

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from fairseq_aggdec.lab.bench.record import load_record
from tests.scripts.checkout import checkout_with, run, run_whatever_comes
from tests.support.synthetic_images import make_images, write_npz


def test_all_stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = checkout_with("sign_digits_sr", tmp_path)
    for path in (
        root / "configs/sign_digits_sr/base.yaml",
        root / "configs/sign_digits_sr/heads.yaml",
    ):
        config = OmegaConf.load(path)
        for side in (config.model.get("encoder"), config.model.get("decoder")):
            if side is not None:  # heads take theirs from the base
                side.layers = 1
                side.embed_dim = 32
                side.ffn_embed_dim = 64
        config.task.valid_images = config.task.test_images = 4
        config.task.input_size = 2
        config.task.output_size = 8
        # emulated, very slowly, where the processor does not multiply bfloat16
        config.common.bf16 = False
        OmegaConf.save(config, path)
    images = tmp_path / "data/img-sign-digits/sign_digits_rgb32.npz"
    images.parent.mkdir(parents=True)
    write_npz(images, make_images(40, size=16))
    settings = {
        "BASE_UPDATES": "6",
        "HEADS_UPDATES": "4",
        "BLOCK_SIZES": "2",
        "LIMIT": "1",
    }
    settings["OPTIONS"] = "--threads 1 --repeats 1"
    for name, value in settings.items():
        monkeypatch.setenv(f"SR_{name}", value)
    folders = {"data": tmp_path / "data", "work": tmp_path, "root": root}
    run("reproduce", "sign_digits_sr", **folders)
    table = tmp_path / "sign_digits_sr" / "table"
    for model in ("regular-2", "fine-tuned-2"):
        assert [
            run.counts.same_pixels
            for run in load_record(table / model / "record.json").runs
        ][:2] == [1.0, 1.0]
        assert (table / model / "pictures.png").is_file()
    assert "Mean accepted block" in (table / "table.md").read_text("utf-8")


def test_an_unknown_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SR_SETTING", "blue")
    done = run_whatever_comes(
        "reproduce", "sign_digits_sr", data=tmp_path, work=tmp_path
    )
    assert done.returncode == 2
    assert "SR_SETTING=blue: grey or rgb" in done.stderr
