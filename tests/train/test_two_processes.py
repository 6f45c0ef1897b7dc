"""Two processes that share each batch train as one process does with the whole batch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.train.two_processes import prepare

ROOT = Path(__file__).resolve().parents[2]


def test_drafter_and_heads_have_the_losses_of_one_process(
    toy_data: Path, tmp_path: Path
) -> None:
    prepare(tmp_path, toy_data)
    command = [
        sys.executable,
        "-m",
        "tests.train.two_processes",
        str(tmp_path),
    ]
    workers = [
        subprocess.Popen(command, env=os.environ | {"RANK": rank}, cwd=ROOT)
        for rank in "01"
    ]
    for worker in workers:
        assert worker.wait(300) == 0
    (drafter, two), (heads, _) = (
        json.loads((tmp_path / f"losses-{rank}.json").read_text()) for rank in "01"
    )
    # to the third digit, where fairseq rounds
    assert heads["blockwise"] == pytest.approx(two["blockwise"], abs=0.0015)
    assert heads["blockwise"][-1] != heads["blockwise"][0]
    # within two per cent: which blocks of a sentence are drawn depends on its place in the batch
    assert drafter["drafter"] == pytest.approx(two["drafter"], rel=0.02)
    assert drafter["drafter"][-1] < drafter["drafter"][0]
