from pathlib import Path

import pytest

from fairseq_aggdec.data.text_files import write_lines
from fairseq_aggdec.data.text_stages import TextStages, read_config
from fairseq_aggdec.errors import AggdecError
from tests.data.preparing import ROOT, make_data, small

LANGUAGES = {"source": "src", "target": "tgt"}


def stages(folder: Path, parallel: object, **config: object) -> TextStages:
    return TextStages({"languages": LANGUAGES, "parallel": parallel, **config}, folder, folder / "work")


def lines(folder: Path, name: str) -> list[str]:
    return (folder / "work/text" / name).read_text().splitlines()


def test_what_a_killed_corruption_left_does_not_block_the_next_run(tmp_path: Path) -> None:
    preparation = small(ROOT / "configs/gec_small/prepare.yaml", make_data(tmp_path / "data"), tmp_path / "work")
    preparation.clean()
    write_lines(preparation.work / "text/valid.partial.src", ["complete, but not under its own name yet"])
    preparation.corrupt()
    names = {path.name for path in (preparation.work / "text").iterdir()}
    assert names == {f"{name}.{side}" for name in ("train", "train1", "valid", "test") for side in ("src", "tgt")}


@pytest.mark.parametrize("experiment", ["gec_small", "ape_small", "wikisplit_small", "ua_gec_small", "mucgec_small"])
def test_configs_name_existing_data(experiment: str, aggdec_data: Path) -> None:
    config = read_config(ROOT / "configs" / experiment / "prepare.yaml")
    files = [item["file"] for item in config.get("clean_text", [])]
    for entry in config.get("parallel", {}).values():
        for item in entry if isinstance(entry, list) else [entry]:
            files += [item[key] for key in ("source", "target", "file", "m2", "corrections") if key in item]
    files += config.get("m2", {}).values()
    files += [file for item in config.get("test_sets", []) for file in [item["source"], *item["references"]]]
    assert files
    assert [file for file in files if not (aggdec_data / file).is_file()] == []


def test_names_of_splits() -> None:
    config = {"joined": {}, "further_training_sets": ["last"], "test_sets": [{"name": "jfleg"}]}
    preparation = TextStages(config, Path(), Path())
    assert preparation.training_sets == ["train", "train1", "last"]
    assert preparation.splits == ["train", "train1", "last", "valid", "test", "jfleg"]


def test_held_out_of_given_pairs(tmp_path: Path) -> None:
    """The validation set is taken out of the training pairs, which share no sentence with it nor with the test set."""
    write_lines(tmp_path / "train.tsv", [f"source {n}\ttarget {n}" for n in range(30)] * 2)
    write_lines(tmp_path / "more.tsv", ["one  more\tof them"])
    write_lines(tmp_path / "test.tsv", ["source 7\tx", "y\ttar get 8"])
    train = [{"file": "train.tsv"}, {"file": "more.tsv"}]
    preparation = stages(tmp_path, {"train": train, "test": {"file": "test.tsv"}}, hold_out={"valid": 5})
    preparation.write_text()
    kept, valid = lines(tmp_path, "train.src"), lines(tmp_path, "valid.src")
    assert len(valid) == 5
    assert not set(kept) & set(valid)
    assert {*kept, *valid} == {"one more", *(f"source {n}" for n in range(30) if n not in (7, 8))}  # in the test set
    assert lines(tmp_path, "test.tgt") == ["x", "tar get 8"]

    # What a stopped run left is kept, and what it lacks is made the same.
    text = tmp_path / "work/text"
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in text.iterdir()}
    (text / "valid.tgt").unlink()
    stages(tmp_path, {"train": train, "test": {"file": "test.tsv"}}, hold_out={"valid": 5}).write_text()
    assert {path.name: path.read_bytes() for path in text.iterdir()} == {name: item[0] for name, item in before.items()}
    assert (text / "train.src").stat().st_mtime_ns == before["train.src"][1]


def test_references_and_further_test_sets(tmp_path: Path) -> None:
    for name, line in (("a", "an  output"), ("b", "do n't"), ("c", "I do n't .")):
        write_lines(tmp_path / name, [line])
    pairs = {"source": "a", "target": "b"}
    parallel = {"train": pairs, "valid": pairs, "test": {**pairs, "references": ["b", "a"]}}
    further = [{"name": "other", "source": "c", "references": ["c", "a"]}]
    stages(tmp_path, parallel, test_sets=further).write_text()
    assert lines(tmp_path, "test.ref0") == ["do n't"]
    assert lines(tmp_path, "test.ref1") == ["an output"]
    assert lines(tmp_path, "other.src") == ["I don't."]  # the test sets are Penn Treebank tokens
    assert lines(tmp_path, "other.ref1") == ["an output"]


def test_files_without_pairs_are_refused(tmp_path: Path) -> None:
    write_lines(tmp_path / "empty.tsv", [])
    with pytest.raises(AggdecError, match="train: the files that `parallel` names hold no pairs"):
        stages(tmp_path, {"train": {"file": "empty.tsv"}}).write_text()


def test_documents_without_a_summary_are_refused(tmp_path: Path) -> None:
    write_lines(tmp_path / "train.jsonl", [])
    documents = {"files": {"train": "train.jsonl"}, "source": "source", "target": "target"}
    preparation = TextStages({"languages": LANGUAGES, "documents": documents}, tmp_path, tmp_path / "work")
    with pytest.raises(AggdecError, match=r"train.jsonl: has no document with a summary"):
        preparation.write_text()
