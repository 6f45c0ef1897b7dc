"""Measures a trained drafter at several block sizes, beside greedy decoding: for `aggdec drafter`."""

import math
from collections.abc import Sequence
from pathlib import Path

from fairseq_aggdec.bulk.data_bin import DataBin
from fairseq_aggdec.generation.modes import GAD, GREEDY
from fairseq_aggdec.hub.settings import Settings
from fairseq_aggdec.lab.bench.modes import ModeSpec
from fairseq_aggdec.lab.bench.record import run_of
from fairseq_aggdec.lab.bench.runs import Runs
from fairseq_aggdec.lab.bench.subject import Subject
from fairseq_aggdec.train.drafter.plan import ROUNDS, Measured


def drafter_speed(
    data: DataBin,
    verifier: Path,
    drafter: Path,
    device: str,
    sentences: int,
    block_sizes: Sequence[int],
    until: float = math.inf,
) -> tuple[float, list[Measured]]:
    """Decode sentences one at a time by `greedy` and by `gad` with each block size, in the same rounds.

    At most `sentences` are decoded, the first of the validation set. No second round begins after `until`, on the clock
    of `time.monotonic`. Returns the seconds of a sentence by `greedy`, and a measurement for each block size.

    Raises:
        AggdecError: an output is not that of greedy decoding.
    """
    sources = data.source("valid")
    chosen = [
        sources[number].tolist() for number in range(min(sentences, len(sources)))
    ]
    subject = Subject(
        str(verifier),
        str(data.folder),
        chosen,
        data.source_lang,
        data.target_lang,
        str(drafter),
        max(block_sizes),
        device,
        search=Settings.greedy_search(data.folder),
    )
    with Runs(subject) as runs:
        runners = [runs.runner(ModeSpec.parse(GREEDY), 1)]
        runners += [
            runs.runner(ModeSpec.parse(GAD).having(block_size=size), 1)
            for size in block_sizes
        ]
        greedy, *results = runs.compare_lossless(runners, ROUNDS, until)
    found = []
    for size, result in zip(block_sizes, results, strict=True):
        tokens = run_of(result).counts.mean_accepted_tokens or 0.0
        found.append(
            Measured(size, round(tokens, 3), round(greedy.seconds / result.seconds, 3))
        )
    return greedy.seconds / len(chosen), found
