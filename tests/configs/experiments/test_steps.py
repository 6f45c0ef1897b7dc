"""The steps from raw text to fairseq's binary data, and the small experiments that take them."""

import json
from collections.abc import Iterator
from pathlib import Path
from weakref import WeakSet

import pytest
from experiments.experiment import Experiment
from experiments.first import main as first
from experiments.scores import ExperimentScores
from experiments.sentence_pairs import Pair
from experiments.steps import Steps
from experiments.text_files import read_pairs, write_lines

from fairseq_aggdec.bulk.data_bin import DataBin
from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.errors import AggdecError
from tests.configs.experiments.preparing import (
    ROOT,
    digest,
    experiment,
    make_data,
    prepare,
    small_correction,
    write_gzipped,
)

GOLDEN = "d5fa64f18926eb9ed593ab1a7735add67ce369e50bbf68a061d25c32b35d33ab"
"""What is made of the small data: recorded results are of these bytes. A change of the word tables changes it."""


def given(work: Path, train: list[Pair], experiment: Experiment | None = None) -> Steps:
    """Steps with pairs in `work/text`."""
    steps = Steps(experiment or Experiment(sides=("src", "tgt")), work, work)
    for name, pairs in (
        ("train", train),
        ("valid", [("a b", "a b")]),
        ("test", [("b", "b" + " x" * 99)]),
    ):
        steps.write_pairs(work / "text", name, pairs)
    return steps


@pytest.mark.usefixtures("quick_commands")
def test_gec_from_text_to_binary_and_again(tmp_path: Path) -> None:
    data = make_data(tmp_path / "data")
    module, work = small_correction(), tmp_path / "work"
    prepare(module, data, work)
    assert digest(work) == GOLDEN
    clean = {
        name: (work / "clean" / name).read_text().splitlines()
        for name in ("train", "valid", "test")
    }
    assert len(clean["valid"]) == len(clean["test"]) == 20
    source, target = (
        (work / "text" / f"train.{side}").read_text().splitlines()
        for side in ("src", "tgt")
    )
    assert target == clean["train"]
    assert 0 < sum(a != b for a, b in zip(source, target, strict=True)) < len(target)
    joined = (work / "text/train1.tgt").read_text().splitlines()
    assert joined
    assert not any(
        sentence in line
        for sentence in clean["valid"] + clean["test"]
        for line in (*target, *joined)
    )

    # A second run touches nothing; a lost stage is made again, the same.
    times = {
        path: path.stat().st_mtime_ns for path in work.rglob("*") if path.is_file()
    }
    before = (work / "bpe/valid.src").read_bytes()
    prepare(module, data, work)
    assert {
        path: path.stat().st_mtime_ns for path in work.rglob("*") if path.is_file()
    } == times
    (work / "bpe/valid.src").unlink()
    prepare(module, data, work)
    assert (work / "bpe/valid.src").read_bytes() == before


@pytest.mark.usefixtures("quick_commands")
def test_documents_from_json_to_binary(tmp_path: Path) -> None:
    """Several references where there are several summaries, sources cut, pairs to learn to read from."""
    words = [
        "model",
        "learns",
        "data",
        "deep",
        "network",
        "finds",
        "better",
        "the",
        "small",
        "images",
    ]
    for name, count in (("train", 40), ("dev", 6), ("test", 6)):
        records = []
        for number in range(count):
            sentences = [
                " ".join(words[(number + i + j) % 10] for j in range(6)) + "."
                for i in range(5)
            ]
            summaries = [sentences[1], sentences[2]][
                : 1 if name == "train" else 1 + number % 2
            ]
            records.append(
                json.dumps(
                    {
                        "source": sentences,
                        "target": summaries,
                        "source_labels": [0, 1, 0, 0, 0],
                    }
                )
            )
        write_gzipped(tmp_path / f"scitldr/{name}.jsonl.gz", records)
    module, work = (
        experiment("scitldr", SYMBOLS=60, MAX_SOURCE_TOKENS=12),
        tmp_path / "work",
    )
    prepare(module, tmp_path, work)
    references = [
        (work / f"tok/test.ref{number}").read_text().splitlines() for number in range(2)
    ]
    assert references[0] == (work / "tok/test.target").read_text().splitlines()
    # one that is missing is the first
    assert [a == b for a, b in zip(*references, strict=True)] == [True, False] * 3
    assert not list((work / "text").glob("train.ref*"))
    assert {
        len(line.split())
        for line in (work / "bpe/test.source").read_text().splitlines()
    } == {12}
    sources, targets = (
        (work / f"text/pretrain.{side}").read_text().splitlines()
        for side in ("source", "target")
    )
    assert 40 * (5 + 3 + 1) <= len(sources) == len(targets)
    assert all(
        set(source.split()) <= set(target.split())
        for source, target in zip(sources, targets, strict=True)
    )
    for name in ("pretrain", "train1"):
        assert (work / f"data-bin/{name}.source-target.target.bin").exists()


@pytest.mark.usefixtures("quick_commands")
def test_long_and_empty_training_pairs_are_left_out_and_test_sets_stay(
    tmp_path: Path,
) -> None:
    steps = given(tmp_path, [("a b c", "a b"), ("a " * 9, "a " * 9), ("a b", "")])
    steps.tokenise()
    steps.encode(None, max_tokens=4)
    steps.binarise()
    assert (tmp_path / "bpe/train.src").read_text().splitlines() == ["a b c"]
    assert (tmp_path / "bpe/test.tgt").read_text().split().count("x") == 99
    assert (tmp_path / "data-bin/test.src-tgt.tgt.bin").exists()
    assert not (tmp_path / "data-bin/codes").exists()


def test_pairs_go_from_file_to_file_as_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """300 million synthetic pairs fit no memory."""

    class Line(str):
        """A text whose end can be seen."""

    alive: WeakSet[Line] = WeakSet()
    most = []

    def read(path: Path) -> Iterator[Line]:
        for number in range(200):
            line = Line(f"a b {number}")
            alive.add(line)
            most.append(len(alive))
            yield line

    monkeypatch.setattr("experiments.steps.read_lines", read)
    Steps(Experiment(sides=("src", "tgt")), tmp_path, tmp_path).encode(
        None, max_tokens=9
    )
    assert len((tmp_path / "bpe/train.src").read_text().splitlines()) == 200
    assert max(most) < 10


@pytest.mark.usefixtures("quick_commands")
def test_gpt2_subwords_and_a_given_dictionary(tmp_path: Path) -> None:
    """As BART reads text; with byte-pair merges of our own, as fairseq fetches GPT-2's from the network."""
    symbols = [chr(number) for number in range(ord("a"), ord("z") + 1)] + [
        "Ġ",
        "ab",
        "Ġab",
    ]
    write_lines(
        tmp_path / "bart/encoder.json",
        [json.dumps({symbol: n for n, symbol in enumerate(symbols)})],
    )
    write_lines(tmp_path / "bart/vocab.bpe", ["#version: 0.2", "a b", "Ġ ab"])
    write_lines(tmp_path / "dict.txt", [f"{n} 1" for n in range(len(symbols))])
    steps = given(
        tmp_path, [("ab abc", "ab c")] * 3, Experiment(sides=("src", "tgt"), gpt2=True)
    )
    steps.tokenise()
    steps.encode(steps.gpt2_subwords(), max_tokens=9)
    steps.binarise(tmp_path / "dict.txt")
    assert (tmp_path / "bpe/train.src").read_text().splitlines()[0] == "27 28 2"
    binary = tmp_path / "data-bin"
    assert (binary / "dict.src.txt").read_text().splitlines()[:29] == [
        f"{n} 1" for n in range(29)
    ]
    assert (
        ExperimentScores(steps.experiment, tmp_path, tmp_path)._join("27 28 2")
        == "ab abc"
    ), "before it is scored"


def test_the_first_sentences_of_a_split_are_data_of_their_own(
    toy_data: Path, tmp_path: Path
) -> None:
    first(str(toy_data), "test", "3", str(tmp_path / "first"))
    whole, found = DataBin.find(toy_data), DataBin.find(tmp_path / "first")
    for side, part in (
        (whole.source("test"), found.source("test")),
        (whole.target("test"), found.target("test")),
    ):
        assert [line.tolist() for line in part] == [
            side[number].tolist() for number in range(3)
        ]


def test_a_missing_data_set_and_what_is_no_experiment_are_named(tmp_path: Path) -> None:
    def message(file: Path) -> str:
        with pytest.raises(AggdecError) as caught:
            aggdec(
                [
                    "prepare",
                    str(file),
                    "--data",
                    str(tmp_path / "data"),
                    "--work",
                    str(tmp_path / "work"),
                ]
            )
        return str(caught.value)

    missing = message(ROOT / "configs/gec_small/prepare.py")
    assert (
        f"{tmp_path}/data/tatoeba-en-de/deu.txt.gz does not exist: set AGGDEC_DATA"
        in missing
    )
    assert "prepare.yaml: no such Python file" in message(
        ROOT / "configs/gec_small/prepare.yaml"
    )
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/prepare.py").write_text("x = 1\n")
    assert "prepare.py: has no EXPERIMENT" in message(tmp_path / "mine/prepare.py")


def test_files_that_do_not_belong_together_and_splits_without_pairs(
    tmp_path: Path,
) -> None:
    write_lines(tmp_path / "a", ["one  two ", "three"])
    write_lines(tmp_path / "b", ["1 2", "3", "4"])
    with pytest.raises(
        AggdecError, match=r"a ends after 2 lines, .*b does not: they must have as many"
    ):
        list(read_pairs(tmp_path / "a", tmp_path / "b"))
    assert next(read_pairs(tmp_path / "a", tmp_path / "a")) == ("one two", "one two")
    with pytest.raises(AggdecError, match=r"train: .* hold no pairs"):
        given(tmp_path, [])
