"""`aggdec decode`, with the shipped models."""

import io
import logging
import multiprocessing
import re
from pathlib import Path
from typing import Any

import pytest

from fairseq_aggdec.bulk.folder import Decoded
from fairseq_aggdec.bulk.text import TextShard, TextWorker
from fairseq_aggdec.errors import AggdecError
from tests.bulk.decoding import (
    CORRECT,
    IN_SHARDS,
    MT,
    SENTENCES,
    TRANSLATE,
    at_the_first_shard,
    count,
    outputs,
    run,
)
from tests.support.helpers import refused_with, run_cli


def test_the_outputs_are_those_of_stock_fairseq_interactive(
    text: Path, whole: list[str]
) -> None:
    lines = "\n".join(SENTENCES) + "\n"
    stock = run_cli("fairseq-interactive", *CORRECT, "--beam", 1, "--cpu", stdin=lines)
    detokenised = [
        line.split("\t")[2]
        for line in stock.stdout.splitlines()
        if line.startswith("D-")
    ]
    assert whole == [*detokenised[:10], "", "  ", *detokenised[10:]]
    assert len({*whole}) == 26, "and no two sentences alike"


def test_a_run_that_is_stopped_goes_on(
    text: Path, whole: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [*CORRECT, *IN_SHARDS, "--input", text, "--output", tmp_path / "out"]
    decode = TextWorker.decode

    def stopped_at_the_fourth(self: TextWorker, shard: TextShard) -> Decoded:
        if shard.number == 3:
            raise AggdecError("stopped")
        return decode(self, shard)

    monkeypatch.setattr(TextWorker, "decode", stopped_at_the_fourth)
    with refused_with("stopped"):
        run(*arguments)
    monkeypatch.undo()
    finished = {
        path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.txt")
    }
    assert len(finished) == 3
    (tmp_path / "out/text.000003.txt.partial").write_text("of a run that was killed")
    run(*arguments)
    assert outputs(tmp_path / "out") == whole
    for path, changed in finished.items():
        assert path.stat().st_mtime_ns == changed, "what was finished is not done again"


def test_two_workers_write_what_one_does_and_go_on_after_one_was_killed(
    text: Path, whole: list[str], tmp_path: Path
) -> None:
    many = tmp_path / "text"  # so many that there is time to kill
    many.write_bytes(4 * text.read_bytes())
    files = f"--input {many} --output {tmp_path}/out --workers 2"
    options = [*CORRECT, *IN_SHARDS, *files.split()]
    others = multiprocessing.active_children()  # data loaders of earlier tests

    def workers() -> list[Any]:
        return [
            child for child in multiprocessing.active_children() if child not in others
        ]

    with (
        at_the_first_shard(tmp_path / "out", lambda: workers()[0].kill()),
        refused_with("a worker has died"),
    ):
        run(*options)
    assert 0 < count(tmp_path / "out") < 7 * 4
    assert not workers()
    run(*options)
    assert outputs(tmp_path / "out") == 4 * whole


@pytest.mark.parametrize("options", ["beam --beam 1 --max-len-b 50", "gad"])
def test_by_a_beam_and_with_a_drafter(options: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_text(
        "The weather is nice today.\nWhere is the station?\n", "utf-8"
    )
    mode, *others = options.split()
    drafter = ["--drafter-path", MT / "drafter.pt"] if mode != "beam" else []
    files = ["--input", tmp_path / "text", "--output", tmp_path / "out"]
    run(*TRANSLATE, "--cpu", "--decoding", mode, *others, *drafter, *files)
    assert outputs(tmp_path / "out") == [
        "Das Wetter ist heute schön.",
        "Wo ist der Bahnhof?",
    ]


def test_lines_that_cannot_be_decoded_are_named_and_cost_no_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number, lines in enumerate(
        (["abcdefgh" * 200, SENTENCES[0]], [SENTENCES[1], "B\xe4r", SENTENCES[2]])
    ):
        (tmp_path / f"text{number}").write_bytes("\n".join(lines).encode("latin-1"))
    files = [tmp_path / "text0", tmp_path / "text1"]
    with caplog.at_level(logging.INFO):
        run(*CORRECT, *IN_SHARDS, "--input", *files, "--output", tmp_path / "out")
    found = outputs(tmp_path / "out")
    assert [bool(line) for line in found] == [True, True, True, False, True]
    # where a model corrects; a translation would be empty
    assert found[0] == "abcdefgh" * 200
    lines = (tmp_path / "out/skipped.tsv").read_text("utf-8").splitlines()
    (word, *long), (bad, *why) = (line.split("\t") for line in lines)
    assert (Path(word).name, Path(bad).name) == ("text0", "text1")
    assert re.search(
        r"^1 '.*: too long: \d+ tokens, and the model takes 81; copied$", " ".join(long)
    )
    assert why == ["2", "not valid UTF-8"]
    assert "2 lines were not decoded as a whole" in caplog.text


def test_ranks_of_torchrun_share_a_file(
    whole: list[str], tmp_path: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        run(*CORRECT, *IN_SHARDS, "--input", text, "--output", tmp_path / "out")
        assert count(tmp_path / "out") == (4, 7)[int(rank)]
    assert outputs(tmp_path / "out") == whole
    with refused_with(r"--input -: several commands \(RANK, WORLD_SIZE\) cannot share"):
        run(*CORRECT, *IN_SHARDS, "--output", tmp_path / "other")
    for rank in ("2", "-1", "one"):
        monkeypatch.setenv("RANK", rank)
        with refused_with(
            f"RANK={rank} and WORLD_SIZE=2 in the environment: give each of"
        ):
            run(*CORRECT, *IN_SHARDS, "--input", text, "--output", tmp_path / "other")


def test_another_standard_input_does_not_replace_the_decoded_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decode(given: str) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        run(*CORRECT, *IN_SHARDS, "--output", tmp_path / "out")

    decode("I has a dog .\n")
    decode("I has a dog .\n")
    for other in ("", "I has a cat .\n"):
        with refused_with("holds outputs of stdin as it was before a change"):
            decode(other)
    assert (tmp_path / "out/stdin").read_text() == "I has a dog .\n"
