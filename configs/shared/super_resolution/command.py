"""`aggdec super-resolve`: greedy, exact and approximate blockwise decoding of images, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional

from fairseq_aggdec.cli.options import Count, Maybe, Natural, Verb, number, start


@dataclass(kw_only=True)
class SuperResolve(Verb):
    """Decode images by greedy, exact and approximate blockwise decoding, side by side.

    Writes into --output: record.json (medians and counts, which aggdec report reads), table.md, and
    pictures.png with input, greedy output, approximate output and original of an image in a row.
    """

    data: Positional[str]  # .npz file or folder of images
    path: str  # model with proposal heads, of --task super_resolution
    output: Path  # folder for the results
    gen_subset: str = "test"  # valid or test (or train)
    limit: Maybe[Count] = None  # decode only the first LIMIT images
    block_size: Maybe[Count] = None  # number of heads used (default: all)
    #: greatest difference of intensities that approximate decoding accepts
    accept_distance: Annotated[float, number(float, 0)] = 2.0
    batch_size: Count = 1  # number of images decoded at once
    repeats: Count = 3  # number of rounds, whose median time counts
    pictures: Natural = 6  # number of images drawn
    device: Literal["cpu", "cuda"] = "cpu"  # where to decode
    threads: Maybe[Count] = None  # number of PyTorch's threads on a CPU

    def run(self) -> None:
        start(self.threads, self.path)
        from fairseq_aggdec.files import written_whole
        from fairseq_aggdec.lab.bench.machine import describe

        from .decoding import decode, draw, load, table

        task, model = load(self.path, self.data, self.device)
        record, versions = decode(task, model, self, self.command)
        text = f"{record.title}; batch size {self.batch_size}; {describe(record.machine)}\n\n{table(record)}\n"
        print(text, end="")
        with written_whole(self.output / "table.md") as partial:
            partial.write_text(text, encoding="utf-8")
        if self.pictures:
            draw(
                [images[: self.pictures] for images in versions],
                self.output / "pictures.png",
            )
        record.save(self.output / "record.json")  # last: a folder with it is complete
