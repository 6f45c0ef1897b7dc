import gzip
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from fairseq_aggdec.data.preparation import Preparation, read_config, read_lines, write_lines
from fairseq_aggdec.errors import AggdecError

ROOT = Path(__file__).resolve().parents[2]


def make_data(folder: Path) -> Path:
    """Writes tiny stand-ins for the data sets of configs/gec_small."""
    names = ["Tom", "Mary", "The teacher", "My friend", "The old man", "She", "He", "Somebody"]
    verbs = ["reads", "buys", "wants", "likes", "finds", "has", "was given"]
    things = ["a new book", "the red car", "an apple", "some money", "the best answer", "a good friend"]
    sentences = [f"{name} {verb} {thing} and is happy." for name in names for verb in verbs for thing in things]
    files = {
        "tatoeba-en-de/deu.txt.gz": [f"{sentence}\tSatz" for sentence in sentences],
        "mono-openstax-psychology/psychology2e.en.txt.gz": ["People are often influenced by the group they are in."],
        "mono-peps/peps.en.txt.gz": [f"This document describes what {name} has decided to do." for name in names] * 3,
        "mono-litbank/litbank.en.txt.gz": ["He finds the red car and is happy.", "Thou art a knave and is happy."],
    }
    for name, lines in files.items():
        (folder / name).parent.mkdir(parents=True)
        with gzip.open(folder / name, "wt", encoding="utf-8") as output:
            output.writelines(line + "\n" for line in lines)
    (folder / "jfleg").mkdir()
    for part in ("dev", "test"):
        for suffix in ("src", "ref0", "ref1", "ref2", "ref3"):
            write_lines(folder / "jfleg" / f"{part}.{suffix}", ["I do n't know it . ", "She reads the book ."])
    return folder


def small(config: Path, data: Path, work: Path) -> Preparation:
    preparation = Preparation.from_file(config, data, work)
    preparation.config |= {"hold_out": {"valid": 20, "test": 20}, "bpe": {"symbols": 150, "min_frequency": 2}}
    preparation.config["joined"]["lines"] = 10
    return preparation


def test_gec_from_text_to_binary_and_again(tmp_path: Path) -> None:
    data = make_data(tmp_path / "data")
    config = ROOT / "configs/gec_small/prepare.yaml"
    preparation = small(config, data, tmp_path / "work")
    preparation.run()
    work = preparation.work
    clean = {name: (work / "clean" / name).read_text().splitlines() for name in ("train", "valid", "test")}
    assert len(clean["valid"]) == len(clean["test"]) == 20
    assert not set(clean["train"]) & set(clean["valid"] + clean["test"])
    assert "Thou art a knave and is happy." not in clean["train"]
    assert clean["train"].count("People are often influenced by the group they are in.") in (0, 8)  # repeat: 8
    # Aligned lines, some of them changed, targets untouched.
    source, target = ((work / "text" / f"train.{side}").read_text().splitlines() for side in ("src", "tgt"))
    assert target == clean["train"]
    assert 0 < sum(a != b for a, b in zip(source, target, strict=True)) < len(target)
    # Real test sets are detokenised, then tokenised like everything else, and never filtered.
    assert (work / "text/jfleg-dev.src").read_text().splitlines()[0] == "I don't know it."
    assert (work / "tok/jfleg-dev.ref2").read_text().splitlines()[0] == "I don 't know it ."
    # Long examples are made of training sentences only.
    joined = (work / "text/train1.tgt").read_text().splitlines()
    assert joined
    assert all(len(line.split()) >= 36 for line in joined)
    assert not any(sentence in line for sentence in clean["valid"] + clean["test"] for line in joined)
    binary = work / "data-bin"
    names = {path.name for path in binary.iterdir()}
    assert {
        "train.src-tgt.src.bin",
        "train1.src-tgt.src.bin",
        "valid.src-tgt.tgt.bin",
        "test2.src-tgt.src.bin",
        "codes",
        "dict.en.txt",
    } <= names
    assert (binary / "dict.src.txt").read_bytes() == (binary / "dict.tgt.txt").read_bytes()
    assert not list(work.rglob("*.partial*"))

    # A second run touches nothing; a lost stage is made again, the same.
    times = {path: path.stat().st_mtime_ns for path in work.rglob("*") if path.is_file()}
    before = (work / "bpe/valid.src").read_bytes()
    small(config, data, work).run()
    assert {path: path.stat().st_mtime_ns for path in work.rglob("*") if path.is_file()} == times
    (work / "bpe/valid.src").unlink()
    small(config, data, work).encode()
    assert (work / "bpe/valid.src").read_bytes() == before


def test_parallel_data_is_taken_as_it_is(tmp_path: Path) -> None:
    files = {}
    for name in ("train", "valid", "test"):
        write_lines(tmp_path / f"{name}.mt", ["Er ist ein Haus .", "Ein Test , nicht wahr ?"] * 5)
        write_lines(tmp_path / f"{name}.pe", ["Es ist ein Haus .", "Ein Test , nicht wahr ?"] * 5)
        files[name] = {"source": f"{name}.mt", "target": f"{name}.pe"}
    config = OmegaConf.load(ROOT / "configs/ape_small/prepare.yaml")
    config.parallel = files
    config.bpe.symbols = 60
    OmegaConf.save(config, tmp_path / "prepare.yaml")
    preparation = Preparation.from_file(tmp_path / "prepare.yaml", tmp_path, tmp_path / "work")
    preparation.run()
    assert (tmp_path / "work/tok/train.mt").read_text() == (tmp_path / "train.mt").read_text()
    assert (tmp_path / "work/data-bin/test.mt-pe.pe.bin").exists()


def test_long_pairs_leave_the_training_set_only(tmp_path: Path) -> None:
    preparation = small(ROOT / "configs/gec_small/prepare.yaml", make_data(tmp_path / "data"), tmp_path / "work")
    preparation.config["max_tokens"] = 1
    for stage in (preparation.clean, preparation.corrupt, preparation.copy_test_sets, preparation.tokenise):
        stage()
    preparation.encode()
    assert (preparation.work / "bpe/train.src").read_text() == ""
    assert len((preparation.work / "bpe/valid.src").read_text().splitlines()) == 20


def test_what_a_killed_corruption_left_does_not_block_the_next_run(tmp_path: Path) -> None:
    preparation = small(ROOT / "configs/gec_small/prepare.yaml", make_data(tmp_path / "data"), tmp_path / "work")
    preparation.clean()
    write_lines(preparation.work / "text/valid.partial.src", ["complete, but not under its own name yet"])
    preparation.corrupt()
    names = {path.name for path in (preparation.work / "text").iterdir()}
    assert names == {f"{name}.{side}" for name in ("train", "train1", "valid", "test") for side in ("src", "tgt")}


def test_missing_data_is_named(tmp_path: Path) -> None:
    with pytest.raises(AggdecError, match="AGGDEC_DATA"):
        list(read_lines(tmp_path / "missing.gz"))


def test_read_column(tmp_path: Path) -> None:
    write_lines(tmp_path / "table", ["a\tb", "c\td"])
    assert list(read_lines(tmp_path / "table", 1)) == ["b", "d"]
    with pytest.raises(AggdecError, match="table, line 1: has no column 2"):
        list(read_lines(tmp_path / "table", 2))


@pytest.mark.parametrize("experiment", ["gec_small", "ape_small"])
def test_configs_name_existing_data(experiment: str, aggdec_data: Path) -> None:
    config = read_config(ROOT / "configs" / experiment / "prepare.yaml")
    files = [item["file"] for item in config.get("clean_text", [])]
    files += [file for pair in config.get("parallel", {}).values() for file in pair.values()]
    files += [file for item in config.get("test_sets", []) for file in [item["source"], *item["references"]]]
    assert files
    assert [file for file in files if not (aggdec_data / file).is_file()] == []
