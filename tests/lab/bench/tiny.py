"""A paper's size in miniature, and a record without any measuring."""

from pathlib import Path

from fairseq_aggdec.lab.bench.random_models import (
    SOURCE,
    TARGET,
    RandomModel,
    random_sentences,
    write_random_model,
)
from fairseq_aggdec.lab.bench.record import Counts, Record, Run, Times
from fairseq_aggdec.lab.bench.subject import OracleSettings, Subject
from fairseq_aggdec.models.sizes import Size

TINY = Size(width=32, inner=64, heads=2, encoder_layers=2, decoder_layers=2)
TINY_BART = Size(
    width=32, inner=64, heads=2, encoder_layers=3, decoder_layers=1, like_bart=True
)
VOCABULARY = 400
LENGTH = 12
BLOCK = 8


def tiny_model(folder: Path, size: Size = TINY, drafter_layers: int = 1) -> RandomModel:
    return write_random_model(
        folder, size, drafter_layers, BLOCK, VOCABULARY, small_layers=1
    )


def tiny_subject(model: RandomModel, **changes: object) -> Subject:
    """Random sentences for a model of `tiny_model`, which says LENGTH tokens to each."""
    settings: dict = {
        "path": str(model.checkpoint),
        "data": str(model.folder),
        "sentences": random_sentences(5, LENGTH, VOCABULARY),
        "source_lang": SOURCE,
        "target_lang": TARGET,
        "drafter_path": None if model.drafter is None else str(model.drafter),
        "small_drafter": str(model.small),
        "block_size": BLOCK if model.drafter else 0,
        "search": {"min_len": LENGTH, "max_len_a": 0, "max_len_b": LENGTH},
        "oracle": OracleSettings(edit_ratio=0.25, accepted=3.0),
        "keep": str(model.folder),
    }
    return Subject(**{**settings, **changes})


def made_up_run(
    mode: str,
    seconds: float,
    batch_size: int = 1,
    sentences: int = 4,
    precision: str = "fp32",
    **changes: object,
) -> Run:
    """A mode that takes `seconds` for all sentences, of 11 tokens each, and up to twice that in a slow round.

    `changes`: further fields of `Times` and `Counts`.
    """
    percentiles = {"50": seconds / 4, "95": seconds / 3, "99": seconds / 2}
    times = Times(3, seconds, seconds / 2, seconds * 2, percentiles)
    counts = Counts(
        sentences, 11 * sentences, identical=sentences, compared_with="fp32"
    )
    if changes.get("iterations"):
        counts.drafted = counts.accepted = 0
    for name, value in changes.items():
        setattr(times if hasattr(times, name) else counts, name, value)
    implementation = "fairseq" if mode.startswith("beam") else "fairseq_aggdec"
    return Run(mode, implementation, precision, batch_size, times, counts)


def made_up_record(runs: list[Run]) -> Record:
    return Record(
        title="made up",
        command="aggdec bench DATA --path model.pt",
        date="2030-01-01T00:00:00+00:00",
        commit="0123456789ab",
        machine={
            "processor": "P",
            "cores": 2,
            "threads": 1,
            "system": "S",
            "versions": {"torch": "0"},
        },
        sentences=runs[0].counts.sentences,
        source_tokens=10 * runs[0].counts.sentences,
        edit_ratio=0.25,
        runs=runs,
    )
