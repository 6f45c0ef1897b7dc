"""Times the passes of a random base model.

`python configs/shared/measuring/pass_times.py DEVICE FOLDER`; FOLDER has the model, or gets it. Without times on a CPU.
"""

import sys
from pathlib import Path
from typing import Any

import torch

from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block
from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.engine.graphs.graph_cache import Graph
from fairseq_aggdec.lab.bench.random_models import (
    SOURCE,
    TARGET,
    random_sentences,
    write_random_model,
)
from fairseq_aggdec.model import load
from fairseq_aggdec.models.sizes import SIZES

_SHAPES = [(1, 1), (8, 4), (8, 1), (32, 1), (1, 8), (1, 32), (32, 4), (32, 32)]
"""rows, and tokens of a row; PyTorch's operations compute the last two"""
_START = 12  # the position of a row's first token


@torch.no_grad()
def main(device: str, folder: Path) -> None:
    """Print a line for each size of a pass."""
    made = write_random_model(folder, SIZES["base"], trained_in=torch.float16)
    loaded = load(
        made.checkpoint,
        folder,
        source_lang=SOURCE,
        target_lang=TARGET,
        device=device,
        precision="fp16",
    )
    (model,) = loaded.models
    words = loaded.task.target_dictionary
    rules = SearchRules(
        words.pad(),
        words.unk(),
        words.eos(),
        max_len=2 * _START + 32,
        symbols=len(words),
    )
    engines = Engines()
    engine: Any = engines.decoder(model.decoder)
    for rows, width in _SHAPES if device == "cuda" else _SHAPES[:2]:
        # a pass of the size is captured, and is then the last of the graphs
        source = torch.tensor(random_sentences(rows, 25, len(words)), device=device)
        lengths = torch.full((rows,), source.size(1), device=device)
        engine.start(
            engines.encode(model, {"src_tokens": source, "src_lengths": lengths})
        )
        engine.verify(Block.of(source[:, :1].repeat(1, width), [_START] * rows), rules)
        graph: Graph = list(engine.runner.cache._graphs.values())[-1]

        # the median of five rounds
        microseconds = sorted(_replayed(graph, 200) for _ in range(5))[2]
        print(f"{rows} x {width}: {microseconds:.0f} us a pass")


def _replayed(graph: Graph, times: int) -> float:
    """Microseconds of each of many replays, one after the other."""
    if graph.replay is None:
        return 0.0  # on a CPU
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(times):
        graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / times * 1e3


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
