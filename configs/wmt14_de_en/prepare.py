"""Data of WMT14 German-English."""

from experiments.corpora import wmt
from experiments.experiment import Experiment

EXPERIMENT = Experiment(
    sides=("de", "en"),
    languages={"de": "de", "en": "en"},
    score=("bleu", "sacrebleu", "repetition"),
)
prepare = wmt.preparation(wmt.wmt14)
