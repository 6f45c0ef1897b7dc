"""Data of WMT14 English-German."""

from experiments.corpora import wmt
from experiments.experiment import Experiment

EXPERIMENT = Experiment(
    sides=("en", "de"),
    languages={"en": "en", "de": "de"},
    score=("compound-bleu", "bleu", "sacrebleu", "repetition"),
)
prepare = wmt.preparation(wmt.wmt14)
