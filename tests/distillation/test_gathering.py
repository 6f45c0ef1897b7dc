import json
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from fairseq_aggdec.errors import AggdecError
from tests.distillation.conftest import Distil, contents
from tests.helpers import ToyModel


@pytest.fixture(scope="module")
def two_shards(distil: Distil, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output folder that is not made yet, with its two shards; not to be written to."""
    output = tmp_path_factory.mktemp("shards") / "out"
    for shard in (1, 0):
        distil(output, "--num-shards", 2, "--shard-id", shard)
    return output


@pytest.fixture
def output(two_shards: Path, tmp_path: Path) -> Path:
    """The same, to be written to."""
    shutil.copytree(two_shards.with_name("out.shards"), tmp_path / "out.shards")
    return tmp_path / "out"


def test_two_shards_give_what_one_gives(distil: Distil, distilled: Path, output: Path) -> None:
    assert contents(distil(output, "--gather")) == contents(distilled)


def test_aggressive_beam_search_gives_the_same_bytes(distil: Distil, distilled: Path, tmp_path: Path) -> None:
    """In two shards; the record says which search it was, and the two do not mix."""
    output, aggressive = tmp_path / "out", ("--decoding", "aggressive-beam")
    for shard in (0, 1):
        distil(output, *aggressive, "--num-shards", 2, "--shard-id", shard)
    with pytest.raises(AggdecError, match=r"other settings \(decoding: aggressive-beam there, beam asked for\)"):
        distil(output, "--gather", "--decoding", "beam")
    found, expected = contents(distil(output, "--gather")), contents(distilled)
    record = found.pop("distillation.json").replace(b'"decoding": "aggressive-beam"', b'"decoding": "beam"')
    assert record == expected["distillation.json"]
    assert found == {name: text for name, text in expected.items() if name != "distillation.json"}


def test_several_splits_in_shards(distil: Distil, tmp_path: Path) -> None:
    """Stopped in the second split; gathered only when it is said that there are two."""
    subsets = ["--subset", "test,valid"]
    expected = contents(distil(tmp_path / "whole", *subsets))
    output, shards = tmp_path / "out", tmp_path / "out.shards"
    for shard in (0, 1):
        distil(output, *subsets, "--num-shards", 2, "--shard-id", shard)
    torn = shards / "valid.shard-1-of-2.jsonl"
    torn.write_bytes(torn.read_bytes()[:-9])
    with pytest.raises(AggdecError, match=r"valid: shard 1 of 2 .* torn or damaged"):
        distil(output, *subsets, "--gather")
    distil(output, *subsets, "--num-shards", 2, "--shard-id", 1)
    with pytest.raises(AggdecError, match=r"has shards of test, valid, too; say --subset train,test,valid to gather"):
        distil(output, "--gather")
    assert not output.exists()
    assert contents(distil(output, *subsets, "--gather")) == expected


def change(number: int, edit: Callable[[dict], None]) -> Callable[[Path], None]:
    """Rewrites one line of shard 1, with a checksum that fits."""

    def damage(shards: Path) -> None:
        path = shards / "train.shard-1-of-2.jsonl"
        lines = path.read_bytes().split(b"\n")
        record = json.loads(lines[number].partition(b" ")[2])
        edit(record)
        text = json.dumps(record).encode()
        lines[number] = b"%08x %s" % (zlib.crc32(text), text)
        path.write_bytes(b"\n".join(lines))

    return damage


def cut(shards: Path) -> None:
    path = shards / "train.shard-1-of-2.jsonl"
    path.write_bytes(path.read_bytes()[:-9])


def drop_last_batch(shards: Path) -> None:
    path = shards / "train.shard-1-of-2.jsonl"
    path.write_bytes(b"\n".join(path.read_bytes().split(b"\n")[:-2]) + b"\n")


def drop_target(record: dict) -> None:
    size = record["sizes"].pop()
    del record["tokens"][-size:]


def swap_sentences(record: dict) -> None:
    record["sentences"].reverse()


def set_teacher(record: dict) -> None:
    record["settings"]["teacher"] = ["0" * 64]


def set_symbol(record: dict) -> None:
    record["tokens"][0] = 60000


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut, r"torn or damaged after \d+ batches; run it"),
        (drop_last_batch, r"holds \d+ of its \d+ batches; run it"),
        (change(2, drop_target), r"holds \d+ targets for \d+ sentences"),
        (change(2, swap_sentences), r"holds other sentences than it should"),
        (change(2, set_symbol), r"target of sentence \d+ is no sentence of the target dictionary"),
        (change(0, set_teacher), r"other settings than shard 0 \(teacher: 000000000000 here, \w{12} in shard 0\)"),
    ],
)
def test_a_bad_shard_is_refused_by_name(
    distil: Distil, output: Path, damage: Callable[[Path], None], message: str
) -> None:
    damage(output.with_name("out.shards"))
    with pytest.raises(AggdecError, match=rf"train: shard 1 of 2 \(.*train.shard-1-of-2.jsonl\): .*{message}"):
        distil(output, "--gather")
    assert not output.exists()


def test_other_data_are_refused(distil: Distil, output: Path, toy_model_dir: ToyModel, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(toy_model_dir.data, other)
    with (other / "train.src-tgt.src.bin").open("r+b") as file:
        file.write(b"\x09")
    with pytest.raises(AggdecError, match=r"shard 0 of 2 .*from other data than .*other holds now"):
        distil(output, "--gather", data=other)
