import shutil
from pathlib import Path

import numpy as np
import pytest
from fairseq.data import Dictionary
from fairseq.tasks.translation import load_langpair_dataset

from fairseq_aggdec.bulk.data_bin import DataBin
from fairseq_aggdec.train.distilling import write_data_bin
from tests.support.helpers import ToyModel
from tests.train.distilling import Distil, contents


@pytest.fixture
def data(toy_model_dir: ToyModel, tmp_path: Path) -> DataBin:
    """Toy data with a second training shard, a second test set and further files."""
    folder = tmp_path / "data"
    shutil.copytree(toy_model_dir.data, folder)
    for path in list(folder.glob("test.src-tgt.*")):
        shutil.copyfile(path, folder / path.name.replace("test", "train1", 1))
        shutil.copyfile(path, folder / path.name.replace("test", "test1", 1))
    (folder / "codes").write_text("a b\n")
    (folder / "train.src").write_text("raw text\n")
    return DataBin.find(folder)


def targets_of(data: DataBin, split: str, skipped: set[int]) -> list[np.ndarray | None]:
    """Sentence 5 gets `symbol 5, EOS`, and so on."""
    eos = data.target_dictionary.eos()
    numbers = range(len(data.source(split)))
    return [None if number in skipped else np.array([4 + number % 9, eos]) for number in numbers]


def pairs(folder: Path, split: str) -> list[tuple[list[int], list[int]]]:
    """What fairseq-train reads."""
    dictionaries = [Dictionary.load(str(folder / f"dict.{lang}.txt")) for lang in ("src", "tgt")]
    dataset = load_langpair_dataset(
        str(folder), split, "src", dictionaries[0], "tgt", dictionaries[1], False, "mmap", -1, True, False, 99, 99
    )
    return [(dataset[i]["source"].tolist(), dataset[i]["target"].tolist()) for i in range(len(dataset))]


@pytest.mark.parametrize("keep", [True, False])
def test_pairs_are_in_order_and_skipped_ones_kept_or_left_out(data: DataBin, tmp_path: Path, keep: bool) -> None:
    output, skipped = tmp_path / "out", {0, 7}
    targets = targets_of(data, "train", skipped)
    write_data_bin(output, data, {"train": targets}, {"train": {}}, keep)
    expected = []
    for number, (source, original) in enumerate(pairs(data.folder, "train")):
        target = targets[number]
        if target is not None:
            expected.append((source, target.tolist()))
        elif keep:
            expected.append((source, original))
    assert pairs(output, "train") == expected

    listed = (output / "distillation.skipped.tsv").read_text().splitlines()
    fate = "original target kept" if keep else "left out"
    lengths = data.source("train").sizes
    assert listed == [f"train\t{number}\t{lengths[number]}\t{fate}" for number in sorted(skipped)]
    own = {"distillation.json", "distillation.skipped.tsv"}
    written, original_files = contents(output), contents(data.folder)
    assert written.keys() - own == original_files.keys() - {"train.src"}
    for name in original_files.keys() - {"train.src"}:
        if not name.startswith("train."):
            assert written[name] == original_files[name]


def test_all_training_shards_are_distilled_unless_one_is_named(distil: Distil, data: DataBin, tmp_path: Path) -> None:
    both = distil(tmp_path / "both", data=data.folder)
    train, one, test = (pairs(both, split) for split in ("train", "train1", "test"))
    assert len(train) < len(pairs(data.folder, "train"))  # the long ones are left out
    assert [source for source, _ in one] == [source for source, _ in test if len(source) <= 40]
    assert [target for _, target in one] != [target for source, target in test if len(source) <= 40]
    single = distil(tmp_path / "single", "--subset", "train1", data=data.folder)
    assert pairs(single, "train1") == one
    assert pairs(single, "train") == pairs(data.folder, "train")
