"""The command of bulk decoding with the shipped models, and what tests do to it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.demo.shipped import SHIPPED

GEC = SHIPPED["gec"].folder
MT = SHIPPED["mt"].folder
TOKENS = "--tokenizer moses --moses-no-escape --moses-no-dash-splits --bpe subword_nmt --bpe-codes"
CORRECT = f"{GEC} --path {GEC}/model.pt -s en -t en {TOKENS} {GEC}/bpecodes".split()
TRANSLATE = f"{MT} --path {MT}/model.pt -s en -t de {TOKENS} {MT}/bpecodes".split()
IN_SHARDS = "--cpu --decoding iad --shard-lines 4".split()
SENTENCES = (GEC / "sentences.txt").read_text("utf-8").splitlines()[:24]


def run(*options: object) -> None:
    aggdec(["decode", *map(str, options)])


def outputs(folder: Path) -> list[str]:
    """Of all shards, in order; none may be unfinished."""
    assert not list(folder.rglob("*.partial"))
    return [
        line
        for path in sorted(folder.glob("*.txt"))
        for line in path.read_text("utf-8").splitlines()
    ]


def count(folder: Path) -> int:
    """Finished shards."""
    return len([*folder.glob("*.txt")])


@contextmanager
def at_the_first_shard(folder: Path, action: Callable[[], None]) -> Iterator[None]:
    """Acts, beside the block, once a shard is finished."""

    def watch() -> None:
        end = time.monotonic() + 120
        while count(folder) == 0 and time.monotonic() < end:
            time.sleep(0.005)
        action()

    thread = Thread(target=watch)
    thread.start()
    yield
    thread.join()
