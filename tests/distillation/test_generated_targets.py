import os
import pty
import subprocess
import termios
from pathlib import Path

import numpy as np
import pytest

import fairseq_aggdec
from fairseq_aggdec.cli import distill
from fairseq_aggdec.distillation.data_bin import DataBin
from fairseq_aggdec.distillation.from_generate import gather_generated
from fairseq_aggdec.errors import AggdecError
from tests import fork_server
from tests.distillation.conftest import Distil, contents
from tests.helpers import ToyModel

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


def test_a_run_on_a_terminal_gives_what_the_command_gives(
    toy_model_dir: ToyModel, small_data: DataBin, distil: Distil, tmp_path: Path
) -> None:
    """fairseq-generate under a terminal, its bar and its lines in one stream."""
    master, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 80))
    command = [fork_server.environment() / "bin/fairseq-generate", small_data.folder, *SEARCH]
    command += ["--user-dir", Path(fairseq_aggdec.__file__).parent]
    command += ["--path", toy_model_dir.checkpoint, "--gen-subset", "train", "--max-source-positions", "40"]
    command += ["--skip-invalid-size-inputs-valid-test", "--task", "translation"]
    environment = {"OMP_NUM_THREADS": "1", **os.environ}
    running = subprocess.Popen(list(map(str, command)), stdout=terminal, stderr=terminal, env=environment)
    os.close(terminal)
    output = b""
    while True:
        try:
            part = os.read(master, 1 << 16)
        except OSError:  # the terminal is closed
            break
        output += part
    os.close(master)
    assert running.wait() == 0, output[-2000:]
    (tmp_path / "generate.txt").write_bytes(output)
    plain = sum(line.startswith(b"S-") for line in output.split(b"\n"))
    assert plain < 58, "no bar before any S- line: this test is without a subject"

    arguments = [small_data.folder, tmp_path / "gathered", "--gather", "--from-generate", tmp_path / "generate.txt"]
    distill.main(list(map(str, arguments)))
    decoded = distil(
        tmp_path / "decoded", "--max-source-len", 40, data=small_data.folder, settings=[*SEARCH, "--max-tokens", "100"]
    )
    ours, theirs = contents(decoded), contents(tmp_path / "gathered")
    for lang in ("src", "tgt"):
        for kind in ("bin", "idx"):
            assert ours[f"train.src-tgt.{lang}.{kind}"] == theirs[f"train.src-tgt.{lang}.{kind}"]


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


def test_bars_anywhere_are_taken_out(
    lines: list[str], small_data: DataBin, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A bar at any place of the H- line of one sentence after the other."""
    for number, line in enumerate(lines):
        if line.startswith("H-"):
            place = (number * 7) % len(line)
            lines[number] = line[:place] + BAR + line[place:]
    assert same(gather(lines, small_data, tmp_path), small_data)
    assert "a progress bar stood among the lines of 60 sentences; all were recovered" in caplog.text


def test_a_hidden_best_hypothesis_is_not_replaced_by_the_second(
    lines: list[str], small_data: DataBin, tmp_path: Path
) -> None:
    best = lines.index(next(line for line in lines if line.startswith("H-7\t")))
    second = [line.replace("-0.125", "-0.5") for line in lines[best : best + 3]]
    lines[best + 3 : best + 3] = second
    assert same(gather(lines, small_data, tmp_path), small_data)
    del lines[best]
    with pytest.raises(AggdecError, match="sentence 7 has lines, but 1 H- line for 2 P- lines"):
        gather(lines, small_data, tmp_path)


@pytest.mark.parametrize(
    ("start", "text", "message"),
    [
        ("H-7\t", None, r"line \d+: sentence 7 has lines, but no H- line"),
        ("H-7\t", "H-7\t-0.125\tan elephant", "hypothesis of sentence 7 has symbols that are not in the target"),
        ("H-7\t", "H-7\t-0.125" + "\t" + "ba " * 30, "sentence 7 does not have as many tokens as scores"),
        ("S-7\t", "S-7\tan elephant", "source of sentence 7 is not that of the data"),
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
