"""Two processes that share each batch train as one process does with the whole batch."""

import multiprocessing
from pathlib import Path

import pytest

from tests.training.two_processes import prepare, results, train_both_ways

DRAFTER, HEADS = "tatoeba_en_de/drafter", "sign_digits_sr/fine-tuned-heads_rgb"
Curves = dict[str, tuple[list[float], list[float]]]


@pytest.fixture(scope="module")
def curves(toy_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Curves:
    folder = tmp_path_factory.mktemp("trainings") / "of-two"
    prepare([DRAFTER, HEADS], folder, toy_data)
    # one server imports fairseq once, both processes are forked from it
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(
        ["torch._dynamo", "tests.training.two_processes"]
    )  # optimisers ask for the first, late
    workers = [server.Process(target=train_both_ways, args=(rank, [DRAFTER, HEADS], folder)) for rank in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(300)
        assert worker.exitcode == 0
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
