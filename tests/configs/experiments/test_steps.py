"""The steps from raw text to fairseq's binary data, and the small experiments that take them."""

import json
from collections.abc import Iterator
from pathlib import Path
from string import ascii_lowercase
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
from tests.configs.experiments.preparing import (
    ROOT,
    digest,
    experiment,
    make_data,
    prepare,
    small_correction,
    write_gzipped,
)
from tests.support.helpers import refused_with, stamps

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


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines()


def test_gec_from_text_to_binary_and_again(tmp_path: Path) -> None:
    data = make_data(tmp_path / "data")
    module = small_correction()
    work = tmp_path / "work"
    prepare(module, data, work)
    assert digest(work) == GOLDEN
    held_out = lines(work / "clean/valid") + lines(work / "clean/test")
    trained = lines(work / "text/train.tgt") + lines(work / "text/train1.tgt")
    assert len(held_out) == 40
    assert not any(sentence in line for sentence in held_out for line in trained)

    # A second run touches nothing; a lost stage is made again, the same.
    before = stamps(work)
    prepare(module, data, work)
    assert stamps(work) == before
    (work / "bpe/valid.src").unlink()
    prepare(module, data, work)
    assert digest(work) == GOLDEN


def test_documents_from_json_to_binary(tmp_path: Path) -> None:
    """Several references where there are several summaries, sources cut, pairs to learn to read from."""
    words = "model learns data deep network finds better the small images".split()
    for name, count in {"train": 40, "dev": 6, "test": 6}.items():
        records = []
        for number in range(count):
            sentences = [
                " ".join(words[(number + i + j) % 10] for j in range(6)) + "."
                for i in range(5)
            ]
            several = name != "train" and number % 2
            record = {
                "source": sentences,
                "target": sentences[1:3] if several else sentences[1:2],
                "source_labels": [0, 1, 0, 0, 0],
            }
            records.append(json.dumps(record))
        write_gzipped(tmp_path / f"scitldr/{name}.jsonl.gz", records)
    module = experiment("scitldr", SYMBOLS=60, MAX_SOURCE_TOKENS=12)
    work = tmp_path / "work"
    prepare(module, tmp_path, work)
    # a second reference that is missing is the first
    first = lines(work / "tok/test.ref0")
    second = lines(work / "tok/test.ref1")
    assert first == lines(work / "tok/test.target")
    assert [a == b for a, b in zip(first, second, strict=True)] == [True, False] * 3
    assert not list((work / "text").glob("train.ref*"))
    lengths = {len(line.split()) for line in lines(work / "bpe/test.source")}
    assert lengths == {12}
    sources = lines(work / "text/pretrain.source")
    targets = lines(work / "text/pretrain.target")
    assert len(sources) >= 40 * (5 + 3 + 1)
    for source, target in zip(sources, targets, strict=True):
        assert set(source.split()) <= set(target.split())
    for name in ("pretrain", "train1"):
        assert (work / f"data-bin/{name}.source-target.target.bin").exists()


def test_long_and_empty_training_pairs_are_left_out_and_test_sets_stay(
    tmp_path: Path,
) -> None:
    steps = given(tmp_path, [("a b c", "a b"), ("a " * 9, "a " * 9), ("a b", "")])
    steps.tokenise()
    steps.encode(None, max_tokens=4)
    steps.binarise()
    assert lines(tmp_path / "bpe/train.src") == ["a b c"]
    assert lines(tmp_path / "bpe/test.tgt")[0].count("x") == 99
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


def test_gpt2_subwords_and_a_given_dictionary(tmp_path: Path) -> None:
    """As BART reads text; with byte-pair merges of our own, as fairseq fetches GPT-2's from the network."""
    symbols = [*ascii_lowercase, "Ġ", "ab", "Ġab"]
    encoder = json.dumps({symbol: number for number, symbol in enumerate(symbols)})
    write_lines(tmp_path / "bart/encoder.json", [encoder])
    write_lines(tmp_path / "bart/vocab.bpe", ["#version: 0.2", "a b", "Ġ ab"])
    dictionary = [f"{number} 1" for number in range(len(symbols))]
    write_lines(tmp_path / "dict.txt", dictionary)
    bart = Experiment(sides=("src", "tgt"), gpt2=True)
    steps = given(tmp_path, [("ab abc", "ab c")] * 3, bart)
    steps.tokenise()
    steps.encode(steps.gpt2_subwords(), max_tokens=9)
    steps.binarise(tmp_path / "dict.txt")
    assert lines(tmp_path / "bpe/train.src")[0] == "27 28 2"
    assert lines(tmp_path / "data-bin/dict.src.txt")[:29] == dictionary
    joined = ExperimentScores(bart, tmp_path, tmp_path)._join("27 28 2")
    assert joined == "ab abc", "before it is scored"


def test_the_first_sentences_of_a_split_are_data_of_their_own(
    toy_data: Path, tmp_path: Path
) -> None:
    first(str(toy_data), "test", "3", str(tmp_path / "first"))
    whole = DataBin.find(toy_data)
    part = DataBin.find(tmp_path / "first")
    for side in ("source", "target"):
        wanted = [getattr(whole, side)("test")[number].tolist() for number in range(3)]
        assert [line.tolist() for line in getattr(part, side)("test")] == wanted


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("mine/prepare.yaml", "x: 1", "prepare.yaml: no such Python file"),
        ("mine/prepare.py", "x = 1", "prepare.py: has no EXPERIMENT"),
        (
            "mine/prepare.py",
            (ROOT / "configs/tatoeba_en_de/prepare.py").read_text(),
            "/data/tatoeba-en-de/deu.txt.gz does not exist: set AGGDEC_DATA",
        ),
    ],
)
def test_what_is_no_experiment_and_a_missing_data_set_are_named(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    write_lines(tmp_path / name, [content])
    words = [tmp_path / name, "--data", tmp_path / "data", "--work", tmp_path / "work"]
    with refused_with(message):
        aggdec(["prepare", *map(str, words)])


def test_files_that_do_not_belong_together_and_splits_without_pairs(
    tmp_path: Path,
) -> None:
    write_lines(tmp_path / "a", ["one  two ", "three"])
    write_lines(tmp_path / "b", ["1 2", "3", "4"])
    message = r"a ends after 2 lines, .*b does not: they must have as many"
    with refused_with(message):
        list(read_pairs(tmp_path / "a", tmp_path / "b"))
    assert next(read_pairs(tmp_path / "a", tmp_path / "a")) == ("one two", "one two")
    with refused_with(r"train: .* hold no pairs"):
        given(tmp_path, [])
