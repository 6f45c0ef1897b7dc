from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from fairseq_aggdec.data.corruption_files import FileCorruption
from fairseq_aggdec.data.pair_files import PairFile
from fairseq_aggdec.data.prepare_config import Languages, PrepareConfig, TestSet
from fairseq_aggdec.data.text_files import write_lines
from fairseq_aggdec.data.text_stages import clean, corrupt, write_text
from fairseq_aggdec.errors import AggdecError
from tests.data.preparing import ROOT, make_data, small

LANGUAGES = Languages("src", "tgt")


def write(folder: Path, **entries: Any) -> None:
    """Runs the stages up to text, on data in a folder."""
    write_text(PrepareConfig(LANGUAGES, **entries), folder, folder / "work")


def lines(folder: Path, name: str) -> list[str]:
    return (folder / "work/text" / name).read_text().splitlines()


def test_what_a_killed_corruption_left_does_not_block_the_next_run(tmp_path: Path) -> None:
    config, work = small(ROOT / "configs/gec_small/prepare.yaml"), tmp_path / "work"
    data = make_data(tmp_path / "data")
    clean(config, data, work)
    write_lines(work / "text/valid.src.partial", ["complete, but not under its own name yet"])
    corrupt(config, data, work)
    names = {path.name for path in (work / "text").iterdir()}
    assert names == {f"{name}.{side}" for name in ("train", "train1", "valid", "test") for side in ("src", "tgt")}


def test_a_list_of_words_is_a_file_of_the_data_sets(tmp_path: Path) -> None:
    write_lines(tmp_path / "words.txt", ["the 900", "lives much"])
    for name in ("train", "valid", "test"):
        write_lines(tmp_path / "work/clean" / name, ["The student lives here."])
    config = PrepareConfig(LANGUAGES, corrupt=FileCorruption(vocab=Path("words.txt")))
    with pytest.raises(AggdecError, match=rf"{tmp_path}/words\.txt, line 2: 'much' is not a count"):
        corrupt(config, tmp_path, tmp_path / "work")


@pytest.mark.parametrize("experiment", ["gec_small", "wikisplit_small", "ua_gec_small", "mucgec_small"])
def test_configs_name_existing_data(experiment: str, aggdec_data: Path) -> None:
    config = PrepareConfig.read(ROOT / "configs" / experiment / "prepare.yaml")
    files = [item.file for item in config.clean_text]
    for entry in (asdict(entry) for name in config.parallel for entry in config.pair_files(name)):
        files += [entry[key] for key in ("source", "target", "file", "m2", "corrections") if entry[key]]
    files += config.m2.values()
    files += [file for item in config.test_sets for file in [item.source, *item.references]]
    assert files
    assert [file for file in files if not (aggdec_data / file).is_file()] == []


def test_held_out_of_given_pairs(tmp_path: Path) -> None:
    """The validation set is taken out of the training pairs, which share no sentence with it nor with the test set."""
    write_lines(tmp_path / "train.tsv", [f"source {n}\ttarget {n}" for n in range(30)] * 2)
    write_lines(tmp_path / "more.tsv", ["one  more\tof them"])
    write_lines(tmp_path / "test.tsv", ["source 7\tx", "y\ttar get 8"])
    files = {"train": [PairFile(file="train.tsv"), PairFile(file="more.tsv")], "test": PairFile(file="test.tsv")}
    write(tmp_path, parallel=files, hold_out={"valid": 5})
    kept, valid = lines(tmp_path, "train.src"), lines(tmp_path, "valid.src")
    assert len(valid) == 5
    assert not set(kept) & set(valid)
    assert {*kept, *valid} == {"one more", *(f"source {n}" for n in range(30) if n not in (7, 8))}  # in the test set
    assert lines(tmp_path, "test.tgt") == ["x", "tar get 8"]

    # What a stopped run left is kept, and what it lacks is made the same.
    text = tmp_path / "work/text"
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in text.iterdir()}
    (text / "valid.tgt").unlink()
    write(tmp_path, parallel=files, hold_out={"valid": 5})
    assert {path.name: path.read_bytes() for path in text.iterdir()} == {name: item[0] for name, item in before.items()}
    assert (text / "train.src").stat().st_mtime_ns == before["train.src"][1]


def test_references_and_further_test_sets(tmp_path: Path) -> None:
    for name, line in (("a", "an  output"), ("b", "do n't"), ("c", "I do n't .")):
        write_lines(tmp_path / name, [line])
    pairs, test = PairFile("a", "b"), PairFile("a", "b", references=["b", "a"])
    further = [TestSet("other", "c", references=["c", "a"])]
    write(tmp_path, parallel={"train": pairs, "valid": pairs, "test": test}, test_sets=further, tokenizer_language="en")
    assert lines(tmp_path, "test.ref0") == ["do n't"]
    assert lines(tmp_path, "test.ref1") == ["an output"]
    assert lines(tmp_path, "other.src") == ["I don't."]  # the test sets are Penn Treebank tokens
    assert lines(tmp_path, "other.ref1") == ["an output"]
