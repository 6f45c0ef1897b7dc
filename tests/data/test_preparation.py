import json
import os
import re
import signal
from collections.abc import Callable
from dataclasses import replace
from functools import partial, partialmethod
from pathlib import Path

import pytest

from fairseq_aggdec.data import preparation as preparation_module
from fairseq_aggdec.data.preparation import encode, prepare, tokenise
from fairseq_aggdec.data.prepare_config import Gpt2Files, PrepareConfig, Subwords, UsualPairs
from fairseq_aggdec.data.subwords import gpt2
from fairseq_aggdec.data.text_stages import write_text
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import alone_at
from fairseq_aggdec.text.shipped import SHIPPED
from tests.data.preparing import ROOT, digest, make_data, parallel, small, write_gzipped

GEC = ROOT / "configs/gec_small/prepare.yaml"
GOLDEN = "dec6d967aa2c0a01322ef70201931926b060f656e832170238a131c496b535dd"
"""What is made of the small data: recorded results are of these bytes. A change of the word tables changes it."""


@pytest.mark.usefixtures("quick_commands")
def test_gec_from_text_to_binary_and_again(tmp_path: Path) -> None:
    data = make_data(tmp_path / "data")
    config, work = small(GEC), tmp_path / "work"
    prepare(config, data, work)
    assert digest(work) == GOLDEN
    clean = {name: (work / "clean" / name).read_text().splitlines() for name in ("train", "valid", "test")}
    assert len(clean["valid"]) == len(clean["test"]) == 20
    assert not set(clean["train"]) & set(clean["valid"] + clean["test"])
    assert "Thou art a knave and is happy." not in clean["train"]
    psychology = [sentence for sentence in clean["train"] if "influenced by" in sentence]
    assert len(psychology) in (0, 16)  # repeat: 16
    # Text out of tokenised lines and out of JSON.
    everywhere = [sentence for sentences in clean.values() for sentence in sentences]
    assert 'The river, which is 10 km long, doesn\'t reach "the sea".' in everywhere
    assert "It is as good as the others, and faster." in everywhere
    # Aligned lines, some of them changed, targets untouched.
    source, target = ((work / "text" / f"train.{side}").read_text().splitlines() for side in ("src", "tgt"))
    assert target == clean["train"]
    assert 0 < sum(a != b for a, b in zip(source, target, strict=True)) < len(target)
    # Characters that no corrector reads are in some training pairs, the same on both sides, and in no held-out ones.
    unread = [[re.findall(r"[^ -Z^a-z\u00c0-\u024f]", line) for line in side] for side in (source, target)]
    assert unread[0] == unread[1]
    assert 0.05 < sum(map(bool, unread[1])) / len(target) < 0.2
    assert (work / "tok/train.tgt").read_text().isascii()
    assert (work / "text/valid.tgt").read_text().isascii()
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
    assert {"train1.src-tgt.src.bin", "valid.src-tgt.tgt.bin", "test2.src-tgt.src.bin"} <= names
    assert {"codes", "dict.en.txt"} <= names
    assert (binary / "dict.src.txt").read_bytes() == (binary / "dict.tgt.txt").read_bytes()
    assert not list(work.rglob("*.partial*"))

    # A second run touches nothing; a lost stage is made again, the same.
    times = {path: path.stat().st_mtime_ns for path in work.rglob("*") if path.is_file()}
    before = (work / "bpe/valid.src").read_bytes()
    prepare(config, data, work)
    assert {path: path.stat().st_mtime_ns for path in work.rglob("*") if path.is_file()} == times
    (work / "bpe/valid.src").unlink()
    encode(config, data, work)
    assert (work / "bpe/valid.src").read_bytes() == before


@pytest.mark.usefixtures("quick_commands")
def test_documents_from_json_to_binary(tmp_path: Path) -> None:
    """Several references where there are several summaries, sources cut, pairs to learn to read from."""
    words = ["model", "learns", "data", "deep", "network", "finds", "better", "the", "small", "images"]
    for name, count in (("train", 40), ("dev", 6), ("test", 6)):
        records = []
        for number in range(count):
            sentences = [" ".join(words[(number + i + j) % 10] for j in range(6)) + "." for i in range(5)]
            summaries = [sentences[1], sentences[2]][: 1 if name == "train" else 1 + number % 2]
            records.append(json.dumps({"source": sentences, "target": summaries, "source_labels": [0, 1, 0, 0, 0]}))
        write_gzipped(tmp_path / f"scitldr/{name}.jsonl.gz", records)
    config, work = PrepareConfig.read(ROOT / "configs/scitldr/prepare.yaml"), tmp_path / "work"
    config = replace(config, bpe=Subwords(symbols=60), max_source_tokens=12)
    prepare(config, tmp_path, work)
    references = [(work / f"tok/test.ref{number}").read_text().splitlines() for number in range(2)]
    assert references[0] == (work / "tok/test.target").read_text().splitlines()
    assert [a == b for a, b in zip(*references, strict=True)] == [True, False] * 3  # one that is missing is the first
    assert not list((work / "text").glob("train.ref*"))
    assert {len(line.split()) for line in (work / "bpe/test.source").read_text().splitlines()} == {12}
    sources, targets = ((work / f"text/pretrain.{side}").read_text().splitlines() for side in ("source", "target"))
    assert 40 * (5 + 3 + 1) <= len(sources) == len(targets)
    assert all(set(source.split()) <= set(target.split()) for source, target in zip(sources, targets, strict=True))
    documents, extracts = ((work / f"text/train1.{side}").read_text().splitlines() for side in ("source", "target"))
    assert documents == (work / "text/train.source").read_text().splitlines()
    assert extracts == (work / "text/train.target").read_text().splitlines()
    for name in ("pretrain", "train1"):
        assert (work / f"data-bin/{name}.source-target.target.bin").exists()
    times = {path: path.stat().st_mtime_ns for path in work.rglob("*") if path.is_file()}
    prepare(config, tmp_path, work)
    assert {path: path.stat().st_mtime_ns for path in work.rglob("*") if path.is_file()} == times


@pytest.mark.usefixtures("quick_commands")
def test_text_without_subwords_and_unusual_training_pairs(tmp_path: Path) -> None:
    train = [("a b c", "a b"), ("a", "a b"), ("a " * 9, "a " * 9), ("a b", ""), ("a b", "a b c d")]
    train.append(("a b c d e", "a b c d e f"))
    config = parallel(tmp_path, train, clean=UsualPairs(max_words=8, ratio=1.5))
    prepare(replace(config, max_tokens=4), tmp_path, tmp_path / "work")
    assert (tmp_path / "work/bpe/train.src").read_text().splitlines() == ["a b c"]
    assert (tmp_path / "work/bpe/test.tgt").read_text().split().count("x") == 99  # the test set stays as it is
    assert (tmp_path / "work/data-bin/test.src-tgt.tgt.bin").exists()
    assert not (tmp_path / "work/data-bin/codes").exists()


@pytest.mark.usefixtures("quick_commands")
def test_gpt2_subwords_and_a_given_dictionary(tmp_path: Path) -> None:
    """As BART reads text; with byte-pair merges of our own, as fairseq fetches GPT-2's from the network."""
    symbols = [chr(number) for number in range(ord("a"), ord("z") + 1)] + ["Ġ", "ab", "Ġab"]
    (tmp_path / "encoder.json").write_text(json.dumps({symbol: n for n, symbol in enumerate(symbols)}), "utf-8")
    (tmp_path / "vocab.bpe").write_text("#version: 0.2\na b\nĠ ab\n", "utf-8")
    (tmp_path / "dict.txt").write_text("".join(f"{n} 1\n" for n in range(len(symbols))))
    subwords = Subwords(gpt2=Gpt2Files("encoder.json", "vocab.bpe"))
    config = parallel(tmp_path, [("ab abc", "ab c")] * 3, bpe=subwords, dictionary="dict.txt")
    prepare(config, tmp_path, tmp_path / "work")
    assert (tmp_path / "work/bpe/train.src").read_text().splitlines()[0] == "27 28 2"
    binary = tmp_path / "work/data-bin"
    assert (binary / "dict.src.txt").read_text().splitlines()[:29] == [f"{n} 1" for n in range(29)]
    decoder = gpt2(binary / "encoder.json", binary / "vocab.bpe")
    assert decoder.decode("27 28 2") == "ab abc"


@pytest.mark.usefixtures("quick_commands")
def test_subwords_of_a_shipped_model(tmp_path: Path) -> None:
    """So that a training can start from it: the same codes, whatever the text is."""
    config = parallel(tmp_path, [("He go home .", "He goes home .")] * 3, bpe=Subwords(shipped="gec"))
    work = tmp_path / "work"
    write_text(config, tmp_path, work)
    tokenise(config, work)
    encode(config, tmp_path, work)
    assert (work / "codes").read_bytes() == (SHIPPED["gec"].folder / "bpecodes").read_bytes()
    assert (work / "bpe/train.tgt").read_text().splitlines()[0] == "He goes home ."
    with pytest.raises(AggdecError, match="no model 'no' is shipped; there are gec, mt"):
        prepare(replace(config, bpe=Subwords(shipped="no")), tmp_path, tmp_path / "other")
    assert not (tmp_path / "other").exists()
    jfleg = PrepareConfig.read(ROOT / "configs/gec_small/jfleg.yaml")  # of docs/measurements.md
    assert jfleg.bpe == config.bpe


def written_by_preprocess(command: list[str], work: Path) -> None:
    """Stands in for fairseq-preprocess, which takes seconds to start."""
    folder = work / command[command.index("--destdir") + 1]
    folder.mkdir(exist_ok=True)
    for name in ("dict.src.txt", "train.src-tgt.src.bin"):
        (folder / name).write_text(" ".join(command[3:]), encoding="utf-8")


def test_killed_again_and_again_it_makes_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run ends when it is about to finish a file; the next one takes nothing half-written for whole."""
    monkeypatch.setattr(preparation_module, "_run", written_by_preprocess)
    data, config = make_data(tmp_path / "data"), small(GEC)
    prepare(config, data, tmp_path / "whole")

    def run_until(number: int) -> None:
        finished: list[Path] = []

        def finish(really: Callable[[Path, Path], Path], self: Path, target: Path) -> Path:
            finished.append(target)
            if len(finished) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return really(self, target)

        for name in ("replace", "rename"):
            monkeypatch.setattr(Path, name, partialmethod(partial(finish, getattr(Path, name))))
        prepare(config, data, tmp_path / "killed")

    ends: list[int] = []
    while not ends or ends[-1] == signal.SIGKILL:
        child = os.fork()
        if child == 0:
            try:
                run_until(3 * len(ends) + 2)
                os._exit(0)
            finally:
                os._exit(1)
        ends.append(os.waitpid(child, 0)[1])
    assert ends[-1] == 0
    assert len(ends) > 4
    whole = {path.relative_to(tmp_path / "whole"): path for path in (tmp_path / "whole").rglob("*") if path.is_file()}
    killed = {path.relative_to(tmp_path / "killed") for path in (tmp_path / "killed").rglob("*") if path.is_file()}
    assert killed == whole.keys()
    for name, path in whole.items():
        assert (tmp_path / "killed" / name).read_bytes() == path.read_bytes(), name


def test_two_at_once_in_one_folder(tmp_path: Path) -> None:
    config, work = parallel(tmp_path, [("a b", "a b")]), tmp_path / "work"
    work.mkdir()
    with alone_at(work), pytest.raises(AggdecError, match=r"work: another process is at work on it"):
        prepare(config, tmp_path, work)
    assert list(work.iterdir()) == []
