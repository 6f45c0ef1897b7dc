"""Two processes that share each batch train as one process does with the whole batch."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support import fork_server
from tests.train.two_processes import prepare, results

ROOT = Path(__file__).resolve().parents[2]
DRAFTER, HEADS = "tatoeba_en_de/drafter", "sign_digits_sr/fine-tuned-heads_rgb"
Curves = dict[str, tuple[list[float], list[float]]]


@pytest.fixture(scope="module")
def curves(toy_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Curves:
    folder = tmp_path_factory.mktemp("trainings") / "of-two"
    prepare([DRAFTER, HEADS], folder, toy_data)
    python = str(fork_server.environment() / "bin/python")
    command = [python, "-m", "tests.train.two_processes", str(folder), DRAFTER, HEADS]
    environments = [os.environ | {"RANK": str(rank)} for rank in range(2)]
    workers = [subprocess.Popen(command, env=environment, cwd=ROOT) for environment in environments]
    for worker in workers:
        assert worker.wait(300) == 0
    return results([DRAFTER, HEADS], folder)


def test_heads_have_the_same_losses(curves: Curves) -> None:
    """Up to the third digit, where fairseq rounds; of two heads one a batch, at times the identity, without weights."""
    one, two = curves[HEADS]
    assert one == pytest.approx(two, abs=0.0015)
    assert one[-1] != one[0]


def test_drafters_have_the_same_losses_but_for_their_random_blocks(curves: Curves) -> None:
    """Within two per cent: which blocks of a sentence are drawn depends on its place in the batch."""
    one, two = curves[DRAFTER]
    assert one == pytest.approx(two, rel=0.02)
    assert one[-1] < one[0]
