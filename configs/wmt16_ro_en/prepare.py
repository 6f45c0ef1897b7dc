"""Data of WMT16 Romanian-English."""

from experiments.corpora import wmt
from experiments.experiment import Experiment

EXPERIMENT = Experiment(
    sides=("ro", "en"),
    languages={"ro": "ro", "en": "en"},
    score=("bleu", "sacrebleu", "repetition"),
)
prepare = wmt.preparation(wmt.wmt16)
