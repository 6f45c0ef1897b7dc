"""`aggdec distill`: the same bytes whoever decodes, and whatever was stopped; what it writes."""

import logging
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary, data_utils

from fairseq_aggdec.bulk.data_bin import DataBin
from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.generation.options import SearchOptions
from fairseq_aggdec.train.distilling import Teacher, write_data_bin
from fairseq_aggdec.train.distilling import distil as distil_data
from tests.support.helpers import ToyModel, refused_with

Distil = Callable[..., Path]
AGGRESSIVE = ("--decoding", "aggressive-beam")


@pytest.fixture
def distil(toy_model_dir: ToyModel) -> Distil:
    """Runs aggdec distill on the toy data with its model as the teacher; returns the output folder."""

    def run(output: Path, *options: object, data: Path = toy_model_dir.data) -> Path:
        # about sixty batches; the sentences of 60 tokens are skipped
        settings = "--cpu --beam 3 --max-tokens 60 --max-len-b 15 --max-source-len 40"
        words = f"{data} {output} --teacher {toy_model_dir.checkpoint} {settings}"
        aggdec(["distill", *words.split(), *map(str, options)])
        return output

    return run


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def small_data(toy_data: Path, tmp_path: Path) -> DataBin:
    """The same dictionaries with the test set as the training split: 60 sentences, two of them long."""
    folder = tmp_path / "small"
    folder.mkdir()
    for path in (
        *toy_data.glob("dict.*.txt"),
        *toy_data.glob("test.src-tgt.*"),
    ):
        name = path.name.replace("test", "train", 1)
        shutil.copyfile(path, folder / name)
    return DataBin.find(folder)


@pytest.fixture
def data(toy_model_dir: ToyModel, tmp_path: Path) -> DataBin:
    """Toy data with a second training shard and further files."""
    folder = shutil.copytree(toy_model_dir.data, tmp_path / "data")
    for path in list(folder.glob("test.src-tgt.*")):
        name = path.name.replace("test", "train1", 1)
        shutil.copyfile(path, folder / name)
    (folder / "codes").write_text("a b\n")
    (folder / "train.src").write_text("raw text\n")
    return DataBin.find(folder)


def pairs(folder: Path, split: str) -> list[tuple[list[int], list[int]]]:
    """What fairseq-train reads."""
    sources, targets = (
        data_utils.load_indexed_dataset(
            f"{folder}/{split}.src-tgt.{lang}",
            Dictionary.load(str(folder / f"dict.{lang}.txt")),
        )
        for lang in ("src", "tgt")
    )
    assert len(sources) == len(targets)
    return [(sources[i].tolist(), targets[i].tolist()) for i in range(len(sources))]


def test_aggressive_beam_search_gives_the_same_bytes(
    distil: Distil, tmp_path: Path
) -> None:
    expected = contents(distil(tmp_path / "beam"))
    found = contents(distil(tmp_path / "aggressive", *AGGRESSIVE))
    record = found["distillation.json"].replace(b'"aggressive-beam"', b'"beam"')
    assert found | {"distillation.json": record} == expected


def test_targets_repeat_no_ngrams_and_a_search_that_would_repeat_them_is_refused(
    distil: Distil, tmp_path: Path
) -> None:
    def repeating(folder: Path) -> int:
        count = 0
        for _, target in pairs(folder, "train"):
            bigrams = list(pairwise(target))
            count += len(set(bigrams)) < len(bigrams)
        return count

    option = ("--no-repeat-ngram-size", 2)
    free = distil(tmp_path / "free", *AGGRESSIVE)
    assert repeating(free) > 0
    banned = distil(tmp_path / "banned", *AGGRESSIVE, *option)
    assert repeating(banned) == 0
    with refused_with(r"ngram-size: .* add --decoding aggressive-"):
        distil(tmp_path / "beam", *option)


def test_ranks_and_workers_write_what_one_process_does(
    distil: Distil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subsets = "--subset test,valid --shard-sentences 20".split()
    expected = contents(distil(tmp_path / "whole", *subsets))
    assert contents(distil(tmp_path / "two", *subsets, "--workers", 2)) == expected
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank in ("1", "0"):
        monkeypatch.setenv("RANK", rank)
        assert not distil(tmp_path / "ranks", *subsets).exists()
    monkeypatch.delenv("RANK")
    monkeypatch.setattr(Teacher, "decode", None)  # all is decoded
    assert contents(distil(tmp_path / "ranks", *subsets)) == expected


def test_a_complete_folder_is_left_alone(
    distil: Distil, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        output = distil(tmp_path / "out")
        assert "different sources in" in caplog.text
        assert "are empty or longer than 40 tokens and are skipped" in caplog.text
        record = output / "distillation.json"
        stamp = record.stat().st_mtime_ns
        distil(output)
    assert caplog.messages[-1] == f"{output} is complete"
    assert record.stat().st_mtime_ns == stamp
    with refused_with("out: is there, made in another way"):
        distil(output, "--lenpen", "2")


def test_what_is_not_decoded_in_time_is_left_out(
    toy_model_dir: ToyModel, small_data: DataBin, tmp_path: Path
) -> None:
    search = SearchOptions(beam=1, max_len_b=5)
    teacher = Teacher(str(toy_model_dir.checkpoint), small_data, search, cpu=True)
    limits = {"max_tokens": 60, "shard_sentences": 10, "until": 0}
    distil_data(teacher, tmp_path / "out", ["train"], **limits)
    made = pairs(tmp_path / "out", "train")
    assert 10 <= len(made) < len(small_data.source("train")) / 2


def test_an_ensemble_is_not_one_of_its_models(
    toy_model_dir: ToyModel, small_data: DataBin, tmp_path: Path
) -> None:
    state = read_checkpoint(toy_model_dir.checkpoint)
    generator = torch.Generator().manual_seed(1)
    for weight in state["model"].values():
        if weight.dim() == 2:
            weight += 0.05 * torch.randn(weight.shape, generator=generator)
    one = str(toy_model_dir.checkpoint)
    other = str(tmp_path / "other.pt")
    torch.save(state, other)
    sources = [small_data.source("train")[index] for index in range(8)]
    search = SearchOptions(beam=2, max_len_b=8)
    found = []
    for path in (one, other, f"{one}:{other}"):
        teacher = Teacher(path, small_data, search, cpu=True)
        targets = teacher.translate(range(8), sources)
        found.append([target.tolist() for target in targets])
    assert found[2] not in found[:2]


def test_pairs_are_in_order_and_skipped_ones_left_out(
    data: DataBin, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    original = pairs(data.folder, "train")
    skipped = (0, 7)
    new = {
        index: [4 + index % 9, 2]
        for index in range(len(original))
        if index not in skipped
    }
    targets = [
        np.array(new[index]) if index in new else None for index in range(len(original))
    ]
    write_data_bin(output, data, {"train": targets}, {"train": {}})
    expected = [(original[index][0], target) for index, target in new.items()]
    assert pairs(output, "train") == expected
    lengths = data.source("train").sizes
    listed = (output / "distillation.skipped.tsv").read_text().splitlines()
    assert listed == [f"train\t{index}\t{lengths[index]}" for index in skipped]
    # all else is as it was; the raw text, which does not fit, is left out
    written = contents(output)
    before = contents(data.folder)
    own = {"distillation.json", "distillation.skipped.tsv"}
    assert written.keys() == before.keys() - {"train.src"} | own
    for name in written.keys() - own:
        assert name.startswith("train.src-tgt.") or written[name] == before[name]


def test_all_training_shards_are_distilled_unless_one_is_named(
    distil: Distil, data: DataBin, tmp_path: Path
) -> None:
    both = distil(tmp_path / "both", data=data.folder)
    train, one, test = (pairs(both, split) for split in ("train", "train1", "test"))
    assert len(train) < len(pairs(data.folder, "train"))  # the long ones are left out
    short = [(source, target) for source, target in test if len(source) <= 40]
    assert [source for source, _ in one] == [source for source, _ in short]
    assert one != short
    single = distil(tmp_path / "single", "--subset", "train1", data=data.folder)
    assert pairs(single, "train1") == one
    assert pairs(single, "train") == pairs(data.folder, "train")
