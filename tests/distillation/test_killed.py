"""Workers that are killed again and again give what one undisturbed process gives."""

import random
import time
from pathlib import Path

from fairseq_aggdec.cli import distill
from tests.distillation.conftest import SETTINGS, Distil, contents
from tests.helpers import ToBeKilled, ToyModel

KILLS = 3


def run(arguments: list[str]) -> None:
    """The command in a child process; the teacher is held up a little, so that there is time to kill it."""
    from fairseq_aggdec.distillation.translator import Translator

    translate = Translator.translate

    def slowly(self: Translator, *batch: list) -> list:
        time.sleep(0.02)
        return translate(self, *batch)

    Translator.translate = slowly  # type: ignore[method-assign, assignment]
    distill.main(arguments)


def test_one_of_two_workers_killed_at_random_points(
    toy_model_dir: ToyModel, distil: Distil, distilled: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    shard = tmp_path / "out.shards/train.shard-1-of-2.jsonl"
    arguments = [toy_model_dir.data, output, "--teacher", toy_model_dir.checkpoint, *SETTINGS]
    arguments += ["--num-shards", 2, "--shard-id", 1]
    program = f"from tests.distillation.test_killed import run; run({[*map(str, arguments)]!r})"
    size = (distilled.with_name("out.shards") / "train.shard-0-of-1.jsonl").stat().st_size // 2
    rng = random.Random(5)
    sizes = []
    for kill in range(KILLS):
        child = ToBeKilled(program, tmp_path)
        at = rng.randint(0, size // (2 * KILLS))
        before = shard.stat().st_size if shard.exists() else 0
        end = time.monotonic() + 60
        while child.is_alive() and time.monotonic() < end:
            if shard.exists() and shard.stat().st_size - before > at:
                break
            time.sleep(0.001)
        time.sleep(rng.random() * 0.03)
        assert child.is_alive(), f"run {kill} ended by itself"
        child.kill()
        assert not output.exists()
        if kill % 3 == 2:  # the system may have written less than the process
            with shard.open("r+b") as file:
                file.truncate(max(before, shard.stat().st_size - rng.randint(1, 80)))
        sizes.append(shard.stat().st_size)
    assert len(set(sizes)) > KILLS // 2, "the runs were killed at the same point"
    assert ToBeKilled(program, tmp_path).ends_well()
    distil(output, "--num-shards", 2, "--shard-id", 0)
    torn = tmp_path / "out.partial"  # of a gathering that was killed, too
    torn.mkdir()
    (torn / "train.src-tgt.src.bin").write_bytes(b"torn")
    (torn / "left.over").write_text("")
    assert contents(distil(output, "--gather")) == contents(distilled)
    assert not torn.exists()
