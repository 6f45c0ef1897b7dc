"""fairseq-interactive with awkward input, from the standard input and from a file."""

import json
from pathlib import Path

import pytest

from tests.cli.correction import (
    LONGEST,
    assert_same_lists,
    interact,
    summaries,
)
from tests.support.helpers import ToyModel, parse_generate

AWKWARD = [
    "ba dex fi go ku",
    "",
    "   ",
    "ba",
    "ba </s> de",
    "<pad> ba <pad> de <pad>",
    "<unk> ba <unk>",
    "<s> ba",
    "unseen wörter 漢字 😀 ba",
    "\t ba\u00a0de \u2028 fi",
    " ".join(["ba", "de"] * ((LONGEST - 2) // 2)),
    "</s>",
    "<pad>",
    "x" * 5000,
]


def as_input(lines: list[str]) -> bytes:
    return "".join(line + "\n" for line in lines).encode()


@pytest.fixture(scope="module")
def stock(correction_model: ToyModel) -> str:
    """What beam one answers to the lines one by one."""
    return interact(correction_model, None, stdin=as_input(AWKWARD)).stdout


def test_awkward_lines_have_the_whole_lists_of_a_beam(
    correction_model: ToyModel,
) -> None:
    expected, ours = (
        interact(
            correction_model, mode, "--beam", 4, "--nbest", 3, stdin=as_input(AWKWARD)
        )
        for mode in (None, "aggressive-beam")
    )
    assert_same_lists(ours.stdout, expected.stdout, hypotheses=3)


def test_a_file_in_batches_without_too_long_lines(
    correction_model: ToyModel, stock: str, tmp_path: Path
) -> None:
    """Short and long lines share batches, too long ones are left out, and statistics have the numbers of the lines."""
    lines = [*AWKWARD, "ba " * LONGEST, "ba"]
    (tmp_path / "input.txt").write_bytes(as_input(lines))
    options = f"--input {tmp_path}/input.txt --buffer-size 6 --batch-size 4 --skip-invalid-size-inputs-valid-test"
    options += f" --decoding-stats {tmp_path}/stats.jsonl"
    done = interact(correction_model, "iad", *options.split())
    assert (done.stdout + done.stderr).count("name the subwords") == 1, (
        "unknown words are pointed out once"
    )
    found = parse_generate(done.stdout)
    assert [
        summary["sentences"] for summary in summaries(done.stdout + done.stderr)
    ] == [len(found)]
    assert found.keys() == set(range(len(AWKWARD))) | {len(lines) - 1}
    expected = parse_generate(stock)
    assert [found[number].tokens for number in expected] == [
        sentence.tokens for sentence in expected.values()
    ]
    records = map(
        json.loads, (tmp_path / "stats.jsonl").read_text("utf-8").splitlines()
    )
    lengths = {record["id"]: record["output_length"] for record in records}
    assert lengths == {
        number: len(sentence.tokens) for number, sentence in found.items()
    }
