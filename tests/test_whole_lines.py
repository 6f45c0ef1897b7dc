"""Output ends with a whole line, whatever ends the run."""

import logging
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from fairseq_aggdec.compat.whole_lines import in_whole_lines
from fairseq_aggdec.errors import AggdecError
from tests.helpers import ToyModel, parse_generate, run_cli

PLUGIN = Path(__file__).resolve().parents[1] / "fairseq_aggdec"


@contextmanager
def full_after(size: int) -> Iterator[None]:
    """A file that this process writes takes so many bytes, and part of what comes then: as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_what_does_not_fit_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "results.txt"
    path.write_text("before\n")
    with path.open("a") as file, full_after(1000), in_whole_lines(file) as lines:
        many = "".join(f"line {number} ü\n" for number in range(1000))
        with pytest.raises(AggdecError, match=r"results.txt: cannot be written \(File too large\)"):
            lines.write(many)
    expected = ["before", *(f"line {number} ü" for number in range(1000))]
    text = path.read_text(encoding="utf-8")
    assert text.endswith("\n")
    assert 970 < len(text.encode()) <= 1000
    assert text.splitlines() == expected[: text.count("\n")]


def test_an_interrupt_within_a_line_leaves_the_lines_before_it(tmp_path: Path) -> None:
    path = tmp_path / "results.txt"
    with path.open("w") as file, suppress(KeyboardInterrupt), in_whole_lines(file) as lines:
        lines.write("one\ntwo\nthr")
        raise KeyboardInterrupt
    assert path.read_text() == "one\ntwo\n"


def test_the_log_keeps_its_place_between_the_lines(tmp_path: Path) -> None:
    path = tmp_path / "results.txt"
    with path.open("w") as file:
        handler = logging.StreamHandler(file)
        logging.root.addHandler(handler)
        try:
            with in_whole_lines(file) as lines:
                for number in range(2):
                    print("line", number, file=lines)
                    logging.getLogger().warning(f"log {number}")
            logging.getLogger().warning("after")
        finally:
            logging.root.removeHandler(handler)
    assert path.read_text() == "line 0\nlog 0\nline 1\nlog 1\nafter\n"


def test_each_line_is_one_call_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a kill between two calls finds whole lines; those of fairseq are longer than a buffer of Python."""
    calls: list[bytes] = []
    write = os.write

    def noted(descriptor: int, data: memoryview) -> int:
        calls.append(bytes(data))
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", noted)
    with (tmp_path / "results.txt").open("w") as file, in_whole_lines(file) as lines:
        for number in range(3):
            print("word " * 5000, number, file=lines)
    assert calls == [f"{'word ' * 5000} {number}\n".encode() for number in range(3)]


def test_fairseq_generate_on_a_full_disk(toy_model_dir: ToyModel, tmp_path: Path) -> None:
    """A message without a traceback; results and statistics end with whole lines."""
    program = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)); "
    program += "from fairseq_cli.generate import cli_main; cli_main()"
    command = ["-c", program, toy_model_dir.data, "--user-dir", PLUGIN]
    options = ["--task", "aggressive_translation", "--decoding", "greedy", "--path", toy_model_dir.checkpoint, "--cpu"]
    files = ["--results-path", tmp_path / "results", "--decoding-stats", tmp_path / "stats.jsonl"]
    done = run_cli("python", *command, *options, *files, "--batch-size", "4", check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    [message] = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "cannot be written (File too large)" in message
    results = (tmp_path / "results/generate-test.txt").read_text(encoding="utf-8")
    assert results.endswith("\n")
    assert parse_generate(results)
    assert (tmp_path / "stats.jsonl").read_text(encoding="utf-8").endswith("}\n")
