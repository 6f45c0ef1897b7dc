"""Data of the small English-German translation experiment."""

from experiments.corpora import tatoeba
from experiments.experiment import Experiment

EXPERIMENT = Experiment(
    sides=("en", "de"),
    languages={"en": "en", "de": "de"},
    score=("sacrebleu", "bleu", "exact"),
)
prepare = tatoeba.prepare
