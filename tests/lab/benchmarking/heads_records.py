"""Records of models with proposal heads, without any measuring."""

from pathlib import Path

from fairseq_aggdec.lab.benchmarking.image_record import APPROXIMATE, EXACT, ImageRecord, Quality
from fairseq_aggdec.lab.benchmarking.record import Record, Run


def heads_run(mode: str, seconds: float, tokens: list[int], iterations: list[int], bleu: float | None = None) -> Run:
    """One sentence a batch, all of them together in `seconds`."""
    batches = [[number] for number in range(len(tokens))]
    times = [[seconds / len(tokens)] * len(tokens)]
    outputs = [""] * len(tokens)
    return Run(mode, "fairseq_aggdec", "fp32", 1, batches, times, tokens, outputs, iterations, bleu=bleu)


def heads_record(*runs: Run) -> Record:
    machine = {"processor": "a processor", "threads": 2, "cores": 4, "versions": {"torch": "2"}}
    return Record("title", "command", "2020-01-01", None, machine, [5, 5], [0.1, 0.2], list(runs))


def save_image_record(folder: Path, exact_iterations: int, approximate_iterations: int) -> ImageRecord:
    """Two images of 12 intensities; bicubic interpolation has 10 dB, greedy decoding 20, approximate 15."""
    runs = [
        heads_run("greedy", 4.0, [13, 13], [13, 13]),
        heads_run(EXACT, 2.0, [13, 13], [exact_iterations] * 2),
        heads_run(APPROXIMATE, 1.0, [13, 13], [approximate_iterations] * 2),
    ]
    greedy = Quality([255**2 / 100] * 2, [1.0, 1.0])
    approximate = Quality([255**2 / 10**1.5] * 2, [0.5, 0.75])
    quality = {"greedy": greedy, EXACT: greedy, APPROXIMATE: approximate}
    made = ImageRecord(heads_record(*runs), 2.0, [255**2 / 10] * 2, quality)
    made.save(folder)
    return made
