from pathlib import Path

import numpy as np
import pytest

from fairseq_aggdec.cli import distill
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.shards.data_bin import DataBin
from fairseq_aggdec.shards.generate_output import gather_generated
from tests.helpers import ToyModel, generate_here
from tests.shards.distilling import Distil, contents

SEARCH = "--cpu --beam 3 --max-len-b 8 --batch-size 1".split()
BAR = "\r 12%|█▎        | 5/41 [00:02<00:18,  1.95it/s, wps=413]"


def words(data: DataBin, number: int, side: str = "source") -> str:
    dictionary = data.source_dictionary if side == "source" else data.target_dictionary
    tokens = (data.source("train") if side == "source" else data.target("train"))[number]
    return " ".join(dictionary[token] for token in tokens[:-1])


def lines_of(data: DataBin, number: int) -> list[str]:
    """What a perfect teacher would print: the original target."""
    target = words(data, number, "target")
    scores = " ".join(["-0.1"] * (len(target.split()) + 1))
    return [
        f"S-{number}\t{words(data, number)}",
        f"T-{number}\t{target}",
        f"H-{number}\t-0.125\t{target}",
        f"D-{number}\t-0.125\t{target}",
        f"P-{number}\t{scores}",
    ]


@pytest.fixture
def lines(small_data: DataBin) -> list[str]:
    """A complete output, the sentences in another order than in the data; five lines for each."""
    numbers = reversed(range(len(small_data.source("train"))))
    return [line for number in numbers for line in lines_of(small_data, number)]


def gather(lines: list[str], data: DataBin, tmp_path: Path, **options: int) -> list[np.ndarray | None]:
    path = tmp_path / "generate.txt"
    path.write_text("".join(line + "\n" for line in lines), newline="")
    return gather_generated([path], data, "train", **options)


def same(targets: list[np.ndarray | None], data: DataBin) -> bool:
    originals = data.target("train")
    return len(targets) == len(originals) and all(
        target is not None and np.array_equal(target, originals[number]) for number, target in enumerate(targets)
    )


def test_an_output_of_fairseq_generate_gives_what_the_command_gives(
    toy_model_dir: ToyModel, small_data: DataBin, distil: Distil, tmp_path: Path
) -> None:
    limits = ["--max-source-positions", 40, "--skip-invalid-size-inputs-valid-test"]
    teacher = ["--path", toy_model_dir.checkpoint, "--gen-subset", "train", "--task", "translation"]
    printed = generate_here(small_data.folder, *SEARCH, *teacher, *limits)
    (tmp_path / "generate.txt").write_text(printed, encoding="utf-8")
    arguments = ["--from-generate", tmp_path / "generate.txt", "--max-source-len", 40]
    distill.main([*map(str, [small_data.folder, tmp_path / "gathered", *arguments])])
    settings = [*SEARCH, "--max-tokens", "100", "--max-source-len", "40"]
    ours = contents(distil(tmp_path / "decoded", data=small_data.folder, settings=settings))
    theirs = contents(tmp_path / "gathered")
    assert ours | {"distillation.json": b""} == theirs | {"distillation.json": b""}


def test_order_and_several_files(lines: list[str], small_data: DataBin, tmp_path: Path) -> None:
    assert same(gather(lines, small_data, tmp_path), small_data)
    parts = [tmp_path / "one", tmp_path / "two"]
    for part, some in zip(parts, (lines[:100], lines[100:]), strict=True):
        part.write_text("\n".join(some))
    assert same(gather_generated(parts, small_data, "train"), small_data)
    with pytest.raises(AggdecError, match=r"two, line 1: sentence 39 again, after .*two, line 1"):
        gather_generated([*parts, parts[1]], small_data, "train")
    only = [line for line in lines if line.startswith("H-")]
    assert same(gather(only, small_data, tmp_path), small_data)


@pytest.mark.parametrize(
    ("start", "text", "message"),
    [
        ("H-7\t", None, r"line \d+: sentence 7 has 0 H- lines"),
        ("H-7\t", "H-7\t-0.125\tan elephant", "hypothesis of sentence 7 has symbols that are not in the target"),
        ("H-7\t", "H-7\t-0.125" + "\t" + "ba " * 30, "sentence 7 does not have as many tokens as scores"),
        ("S-7\t", "S-7\tan elephant", "source of sentence 7 is not that of the data"),
        ("S-7\t", f"S-7\tba{BAR} de", r"txt, line \d+: a progress bar stands in it; .* --no-progress-bar"),
    ],
)
def test_damage_is_refused_by_number(
    lines: list[str], small_data: DataBin, tmp_path: Path, start: str, text: str | None, message: str
) -> None:
    damaged = [text if line.startswith(start) else line for line in lines]
    with pytest.raises(AggdecError, match=message):
        gather([line for line in damaged if line is not None], small_data, tmp_path)


def test_missing_sentences_are_named_unless_they_are_too_long(
    lines: list[str], small_data: DataBin, tmp_path: Path
) -> None:
    some = [line for line in lines if line.split("\t")[0].split("-")[1] not in ("3", "11")]
    with pytest.raises(AggdecError, match=r"no line at all of 2 sentences \(3, 11\) of train"):
        gather(some, small_data, tmp_path)
    sizes = small_data.source("train").sizes
    long = set(np.flatnonzero(sizes > 40).tolist())
    short = [line for line in lines if int(line.split("\t")[0].split("-")[1]) not in long]
    with pytest.raises(AggdecError, match=r"no line at all of 2 sentences .*--max-source-len"):
        gather(short, small_data, tmp_path)
    message = "2 samples have invalid sizes and will be skipped, max_positions=(40, 99), first few sample ids=[1, 2]"
    for targets in (
        gather(short, small_data, tmp_path, max_source_len=40),
        gather([message, *short], small_data, tmp_path),
    ):
        assert {number for number, target in enumerate(targets) if target is None} == long
