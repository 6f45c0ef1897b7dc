"""`aggdec distill`: the same bytes whoever decodes, and whatever was stopped; what it writes."""

import logging
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary
from fairseq.tasks.translation import load_langpair_dataset

from fairseq_aggdec.bulk.data_bin import DataBin
from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.options import SearchOptions
from fairseq_aggdec.train.distilling import Teacher, write_data_bin
from fairseq_aggdec.train.distilling import distil as distil_data
from tests.support.helpers import ToyModel

Distil = Callable[..., Path]


@pytest.fixture
def distil(toy_model_dir: ToyModel) -> Distil:
    """Runs aggdec distill on the toy data with its model as the teacher; returns the output folder."""

    def run(output: Path, *options: object, data: Path = toy_model_dir.data) -> Path:
        # about sixty batches; the sentences of 60 tokens are skipped
        settings = (
            "--cpu --beam 3 --max-tokens 60 --max-len-b 15 --max-source-len 40".split()
        )
        aggdec(
            [
                "distill",
                *map(
                    str,
                    (
                        data,
                        output,
                        "--teacher",
                        toy_model_dir.checkpoint,
                        *settings,
                        *options,
                    ),
                ),
            ]
        )
        return output

    return run


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def small_data(toy_data: Path, tmp_path: Path) -> DataBin:
    """The same dictionaries with the test set as the training split: 60 sentences, two of them long."""
    (tmp_path / "small").mkdir()
    for path in (*toy_data.glob("dict.*.txt"), *toy_data.glob("test.src-tgt.*")):
        shutil.copyfile(
            path, tmp_path / "small" / path.name.replace("test", "train", 1)
        )
    return DataBin.find(tmp_path / "small")


@pytest.fixture
def data(toy_model_dir: ToyModel, tmp_path: Path) -> DataBin:
    """Toy data with a second training shard and further files."""
    folder = shutil.copytree(toy_model_dir.data, tmp_path / "data")
    for path in list(folder.glob("test.src-tgt.*")):
        shutil.copyfile(path, folder / path.name.replace("test", "train1", 1))
    (folder / "codes").write_text("a b\n")
    (folder / "train.src").write_text("raw text\n")
    return DataBin.find(folder)


def pairs(folder: Path, split: str) -> list[tuple[list[int], list[int]]]:
    """What fairseq-train reads."""
    dictionaries = [
        Dictionary.load(str(folder / f"dict.{lang}.txt")) for lang in ("src", "tgt")
    ]
    dataset = load_langpair_dataset(
        str(folder),
        split,
        "src",
        dictionaries[0],
        "tgt",
        dictionaries[1],
        False,
        "mmap",
        -1,
        True,
        False,
        99,
        99,
    )
    return [
        (dataset[i]["source"].tolist(), dataset[i]["target"].tolist())
        for i in range(len(dataset))
    ]


def test_aggressive_beam_search_gives_the_same_bytes(
    distil: Distil, tmp_path: Path
) -> None:
    expected = contents(distil(tmp_path / "beam"))
    found = contents(distil(tmp_path / "aggressive", "--decoding", "aggressive-beam"))
    record = found["distillation.json"].replace(
        b'"decoding": "aggressive-beam"', b'"decoding": "beam"'
    )
    assert found | {"distillation.json": record} == expected


def test_targets_repeat_no_ngrams_and_a_search_that_would_repeat_them_is_refused(
    distil: Distil, tmp_path: Path
) -> None:
    def repeating(folder: Path) -> int:
        bigrams = [list(pairwise(target)) for _, target in pairs(folder, "train")]
        return sum(len(set(found)) < len(found) for found in bigrams)

    option = ("--no-repeat-ngram-size", 2)
    assert repeating(distil(tmp_path / "free", "--decoding", "aggressive-beam")) > 0
    assert (
        repeating(distil(tmp_path / "banned", "--decoding", "aggressive-beam", *option))
        == 0
    )
    with pytest.raises(
        AggdecError, match=r"no-repeat-ngram-size: .* add --decoding aggressive-beam"
    ):
        distil(tmp_path / "beam", *option)


def test_ranks_and_workers_write_what_one_process_does(
    distil: Distil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subsets = ("--subset", "test,valid", "--shard-sentences", "20")
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
        stamp = (output / "distillation.json").stat().st_mtime_ns
        distil(output)
    assert caplog.messages[-1] == f"{output} is complete"
    assert (output / "distillation.json").stat().st_mtime_ns == stamp
    with pytest.raises(AggdecError, match="out: is there, made in another way"):
        distil(output, "--lenpen", "2")


def test_what_is_not_decoded_in_time_is_left_out(
    toy_model_dir: ToyModel, small_data: DataBin, tmp_path: Path
) -> None:
    search = SearchOptions(beam=1, max_len_b=5)
    teacher = Teacher(str(toy_model_dir.checkpoint), small_data, search, cpu=True)
    distil_data(
        teacher, tmp_path / "out", ["train"], max_tokens=60, shard_sentences=10, until=0
    )
    made = DataBin(tmp_path / "out", "src", "tgt")
    assert (
        10
        <= len(made.source("train"))
        == len(made.target("train"))
        < len(small_data.source("train")) / 2
    )


def test_an_ensemble_is_not_one_of_its_models(
    toy_model_dir: ToyModel, small_data: DataBin, tmp_path: Path
) -> None:
    state = read_checkpoint(toy_model_dir.checkpoint)
    generator = torch.Generator().manual_seed(1)
    for weight in state["model"].values():
        if weight.dim() == 2:
            weight += 0.05 * torch.randn(weight.shape, generator=generator)
    other = tmp_path / "other.pt"
    torch.save(state, other)
    sources, search = (
        [small_data.source("train")[number] for number in range(8)],
        SearchOptions(beam=2, max_len_b=8),
    )
    first, second, both = (
        [
            target.tolist()
            for target in Teacher(str(path), small_data, search, cpu=True).translate(
                range(8), sources
            )
        ]
        for path in (
            toy_model_dir.checkpoint,
            other,
            f"{toy_model_dir.checkpoint}:{other}",
        )
    )
    assert both not in (first, second)


def test_pairs_are_in_order_and_skipped_ones_left_out(
    data: DataBin, tmp_path: Path
) -> None:
    output, original = tmp_path / "out", pairs(data.folder, "train")
    new = [
        None if number in (0, 7) else [4 + number % 9, 2]
        for number in range(len(original))
    ]
    targets = [None if target is None else np.array(target) for target in new]
    write_data_bin(output, data, {"train": targets}, {"train": {}})
    both = zip(original, new, strict=True)
    assert pairs(output, "train") == [
        (source, target) for (source, _), target in both if target is not None
    ]

    lengths = data.source("train").sizes
    listed = (output / "distillation.skipped.tsv").read_text().splitlines()
    assert listed == [f"train\t{number}\t{lengths[number]}" for number in (0, 7)]
    written, before = contents(output), contents(data.folder)
    made = {
        f"train.src-tgt.{side}.{suffix}"
        for side in ("src", "tgt")
        for suffix in ("bin", "idx")
    }
    assert written.keys() == before.keys() - {"train.src"} | {
        "distillation.json",
        "distillation.skipped.tsv",
    }
    assert all(
        written[name] == before[name] for name in before.keys() - {"train.src"} - made
    )


def test_all_training_shards_are_distilled_unless_one_is_named(
    distil: Distil, data: DataBin, tmp_path: Path
) -> None:
    both = distil(tmp_path / "both", data=data.folder)
    train, one, test = (pairs(both, split) for split in ("train", "train1", "test"))
    assert len(train) < len(pairs(data.folder, "train"))  # the long ones are left out
    assert [source for source, _ in one] == [
        source for source, _ in test if len(source) <= 40
    ]
    assert [target for _, target in one] != [
        target for source, target in test if len(source) <= 40
    ]
    single = distil(tmp_path / "single", "--subset", "train1", data=data.folder)
    assert pairs(single, "train1") == one
    assert pairs(single, "train") == pairs(data.folder, "train")
