"""Times the passes of a random base model, without and with each switch of AGGDEC_GPU, and compares their results.

`python scripts/pass_times.py DEVICE FOLDER`; FOLDER has the model, or gets it. Without times on a CPU.
"""

import os
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import Block
from fairseq_aggdec.engine.engines import Engines
from fairseq_aggdec.engine.graphs.graphs import Graph
from fairseq_aggdec.lab.bench.random_models import SOURCE, TARGET, random_sentences, write_random_model
from fairseq_aggdec.model import load
from fairseq_aggdec.models.sizes import SIZES

_SHAPES = [(1, 1), (8, 4), (8, 1), (32, 1), (1, 8), (1, 32), (32, 4), (32, 32)]
"""rows, and tokens of a row; PyTorch's operations compute the last two"""
_START = 12  # the position of a row's first token


@torch.no_grad()
def main(device: str, folder: Path) -> None:
    """Print a line for each size of a pass."""
    made = write_random_model(folder, SIZES["base"], trained_in=torch.float16)
    loaded = load(made.checkpoint, folder, source_lang=SOURCE, target_lang=TARGET, device=device, precision="fp16")
    (model,), words = loaded.models, loaded.task.target_dictionary
    rules = SearchRules(words.pad(), words.unk(), words.eos(), max_len=2 * _START + 32, symbols=len(words))
    shapes, replays = (_SHAPES, 100_000) if device == "cuda" else (_SHAPES[:2], 2)
    usual: dict[tuple[int, int], Tensor] = {}
    lines: dict[tuple[int, int], list[str]] = {shape: [] for shape in shapes}
    for switch in ("", "early", "middle"):
        os.environ["AGGDEC_GPU"] = switch
        engines = Engines()
        engine: Any = engines.decoder(model.decoder)
        for (rows, width), line in lines.items():
            source = torch.tensor(random_sentences(rows, 25, len(words)), device=device)
            lengths = torch.full((rows,), source.size(1), device=device)
            engine.start(engines.encode(model, {"src_tokens": source, "src_lengths": lengths}))
            engine.verify(Block.of(source[:, :1].repeat(1, width), [_START] * rows), rules)
            graph: Graph = list(engine.captured.graphs._graphs.values())[-1]
            found = torch.from_numpy(graph.read().copy())
            apart = float((found - usual.setdefault((rows, width), found)).abs().nan_to_num().max())
            microseconds = sorted(_replayed(graph, 200)[0] for _ in range(5))[2]
            line.append(f"{switch or 'now'} {microseconds:.0f} (apart {apart:.0e})")
            if switch == "early" and (rows, width) == (8, 4):
                line.append(f"{_replayed(graph, replays, compares=True)[1]} of {replays} replays with other bits")
    for (rows, width), line in lines.items():
        print(f"{rows} x {width}, us a pass: {', '.join(line)}")


def _replayed(graph: Graph, times: int, compares: bool = False) -> tuple[float, int]:
    """Microseconds of each of many replays, one behind the other; if it compares, how many had other bits."""
    if graph.replay is None:
        return 0.0, 0  # on a CPU
    assert graph._first is not None
    on_host, odd = graph._first.on_host.view(torch.int32), torch.zeros((), dtype=torch.long, device="cuda")
    expected = on_host.to("cuda", copy=True)
    found = torch.empty_like(expected)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(times):
        graph.replay()
        if compares:
            found.copy_(on_host, non_blocking=True)  # behind the copy from the device
            odd += found.ne(expected).any()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / times * 1e3, int(odd)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
