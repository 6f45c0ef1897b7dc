"""Data of WMT16 English-Romanian."""

from experiments.corpora import wmt
from experiments.experiment import Experiment

EXPERIMENT = Experiment(
    sides=("en", "ro"),
    languages={"en": "en", "ro": "ro"},
    score=("bleu", "sacrebleu", "repetition"),
)
prepare = wmt.preparation(wmt.wmt16)
